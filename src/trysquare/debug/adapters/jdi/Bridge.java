import com.sun.jdi.*;
import com.sun.jdi.connect.*;
import com.sun.jdi.event.*;
import com.sun.jdi.request.*;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.*;

/** A debug adapter for Java: the Debug Adapter Protocol on one side, the JDK's own debug interface on the other. */
public final class Bridge {
    private static final String[] NOT_OURS = {"java.*", "javax.*", "jdk.*", "sun.*", "com.sun.*"};
    private final Wire wire;
    private final Map<Integer, Place> places = new LinkedHashMap<>();
    private final Map<Integer, Object> references = new HashMap<>();
    private final Map<Integer, int[]> frames = new HashMap<>();
    private VirtualMachine vm;
    private int numbers;
    private boolean uncaught = true;
    private boolean raised;
    private String entry;
    private volatile boolean ended;
    private volatile ExceptionEvent thrown;
    /** The thread that stopped last. */
    private volatile ThreadReference halted;

    /** A breakpoint that was asked for. */
    private static final class Place {
        int id;
        String file;
        int line;
        String condition;
        String hitCondition;
        String logMessage;
        int hits;
        BreakpointRequest request;
    }

    private Bridge(Wire wire) {
        this.wire = wire;
    }

    public static void main(String[] words) throws IOException {
        PrintStream out = System.out;
        // Whatever else is printed must not be taken for a message.
        System.setOut(System.err);
        Wire wire = new Wire(System.in, out);
        Bridge bridge = new Bridge(wire);
        for (Map<String, Object> request = wire.read(); request != null; request = wire.read()) {
            bridge.serve(request);
        }
        bridge.end(true);
    }

    private void serve(Map<String, Object> request) {
        try {
            Map<String, Object> body = done(String.valueOf(request.get("command")), Json.object(request.get("arguments")));
            wire.answer(request, body);
            if ("initialize".equals(request.get("command"))) {
                wire.event("initialized", null);
            }
        } catch (VMDisconnectedException gone) {
            wire.refuse(request, "The program has ended.");
        } catch (IncompatibleThreadStateException | InvalidStackFrameException running) {
            wire.refuse(request, "The program is running.");
        } catch (Exception error) {
            wire.refuse(request, error.getMessage() == null ? error.toString() : error.getMessage());
        }
    }

    private Map<String, Object> done(String command, Map<String, Object> given) throws Exception {
        switch (command) {
            case "initialize":
                return abilities();
            case "launch":
                return launch(given);
            case "attach":
                return attach(given);
            case "setBreakpoints":
                return setBreakpoints(given);
            case "setExceptionBreakpoints":
                uncaught = Json.list(given.get("filters")).contains("uncaught");
                raised = Json.list(given.get("filters")).contains("raised");
                watchExceptions();
                return null;
            case "input":
                write(String.valueOf(given.get("text")), false);
                return null;
            case "configurationDone":
                watch();
                vm.resume();
                return null;
            case "threads":
                return threads();
            case "stackTrace":
                return stack(given);
            case "scopes":
                return scopes(given);
            case "variables":
                return variables(given);
            case "evaluate":
                return evaluate(given);
            case "setExpression":
                return setExpression(given);
            case "exceptionInfo":
                return exceptionInfo();
            case "continue":
                resume();
                return Json.of("allThreadsContinued", true);
            case "next":
                return step(given, StepRequest.STEP_OVER);
            case "stepIn":
                return step(given, StepRequest.STEP_INTO);
            case "stepOut":
                return step(given, StepRequest.STEP_OUT);
            case "pause":
                return pause(given);
            case "disconnect":
                end(!Boolean.FALSE.equals(given.get("terminateDebuggee")));
                return null;
            default:
                throw new IllegalArgumentException("`" + command + "` is not known here");
        }
    }

    private Map<String, Object> abilities() {
        return Json.of("supportsConfigurationDoneRequest", true, "supportsConditionalBreakpoints", true,
            "supportsHitConditionalBreakpoints", true, "supportsLogPoints", true, "supportsSetExpression", true,
            "supportsExceptionInfoRequest", true, "exceptionBreakpointFilters",
            List.of(Json.of("filter", "uncaught", "label", "Uncaught exceptions"),
                Json.of("filter", "raised", "label", "All exceptions")));
    }

    private Map<String, Object> launch(Map<String, Object> given) throws Exception {
        LaunchingConnector connector = Bootstrap.virtualMachineManager().defaultConnector();
        Map<String, Connector.Argument> arguments = connector.defaultArguments();
        arguments.get("main").setValue(String.valueOf(given.get("main")));
        arguments.get("options").setValue(String.valueOf(given.get("options")));
        vm = connector.launch(arguments);
        hear(vm.process().getInputStream(), "stdout");
        hear(vm.process().getErrorStream(), "stderr");
        prepare();
        if (Boolean.TRUE.equals(given.get("stopOnEntry"))) {
            entry = String.valueOf(given.get("main")).split("\\s")[0];
        }
        if (given.get("stdin") != null) {
            write(String.valueOf(given.get("stdin")), true);
        }
        return null;
    }

    /** Write to the input of the program, which may read it late or never. */
    private void write(String text, boolean last) {
        Thread thread = new Thread(() -> {
            try {
                OutputStream input = vm.process().getOutputStream();
                input.write(text.getBytes(StandardCharsets.UTF_8));
                input.flush();
                if (last) {
                    input.close();
                }
            } catch (IOException gone) {
                // The program has closed its input, or ended.
                return;
            }
        }, "input");
        thread.setDaemon(true);
        thread.start();
    }

    private Map<String, Object> attach(Map<String, Object> given) throws Exception {
        for (AttachingConnector connector : Bootstrap.virtualMachineManager().attachingConnectors()) {
            if (connector.name().equals("com.sun.jdi.SocketAttach")) {
                Map<String, Connector.Argument> arguments = connector.defaultArguments();
                arguments.get("hostname").setValue(String.valueOf(given.getOrDefault("host", "127.0.0.1")));
                arguments.get("port").setValue(String.valueOf(given.get("port")));
                vm = connector.attach(arguments);
                prepare();
                vm.suspend();
                return null;
            }
        }
        throw new IllegalStateException("This JDK cannot attach.");
    }

    private void prepare() {
        ClassPrepareRequest loaded = vm.eventRequestManager().createClassPrepareRequest();
        for (String other : NOT_OURS) {
            loaded.addClassExclusionFilter(other);
        }
        loaded.setSuspendPolicy(EventRequest.SUSPEND_ALL);
        loaded.enable();
    }

    private void watchExceptions() {
        EventRequestManager requests = vm.eventRequestManager();
        requests.deleteEventRequests(new ArrayList<>(requests.exceptionRequests()));
        if (uncaught || raised) {
            ExceptionRequest exceptions = requests.createExceptionRequest(null, raised, true);
            exceptions.setSuspendPolicy(EventRequest.SUSPEND_ALL);
            exceptions.enable();
        }
    }

    private void watch() {
        Thread thread = new Thread(this::listen, "events");
        thread.setDaemon(true);
        thread.start();
    }

    private Map<String, Object> setBreakpoints(Map<String, Object> given) {
        String file = String.valueOf(Json.object(given.get("source")).get("path"));
        places.values().removeIf(place -> place.file.equals(file) && removed(place));
        List<Object> told = new ArrayList<>();
        for (Object each : Json.list(given.get("breakpoints"))) {
            Place place = placed(file, Json.object(each));
            places.put(place.id, place);
            for (ReferenceType type : vm.allClasses()) {
                bind(place, type);
            }
            told.add(told(place));
        }
        return Json.of("breakpoints", told);
    }

    private Place placed(String file, Map<String, Object> given) {
        Place place = new Place();
        place.id = ++numbers;
        place.file = file;
        place.line = ((Long) given.get("line")).intValue();
        place.condition = (String) given.get("condition");
        place.hitCondition = (String) given.get("hitCondition");
        place.logMessage = (String) given.get("logMessage");
        return place;
    }

    private boolean removed(Place place) {
        if (place.request != null) {
            vm.eventRequestManager().deleteEventRequest(place.request);
        }
        return true;
    }

    private Map<String, Object> told(Place place) {
        boolean bound = place.request != null;
        return Json.of("id", place.id, "verified", bound, "line", bound ? place.request.location().lineNumber() : place.line,
            "message", bound ? null : "its class is not loaded yet, or has no code at this line");
    }

    private boolean bind(Place place, ReferenceType type) {
        if (place.request != null || !type.isPrepared() || !isMadeOf(type, place.file)) {
            return false;
        }
        try {
            List<Location> found = type.locationsOfLine(place.line);
            if (found.isEmpty()) {
                return false;
            }
            place.request = vm.eventRequestManager().createBreakpointRequest(found.get(0));
            place.request.setSuspendPolicy(EventRequest.SUSPEND_ALL);
            place.request.putProperty("place", place);
            place.request.enable();
            return true;
        } catch (AbsentInformationException unknown) {
            return false;
        }
    }

    private static boolean isMadeOf(ReferenceType type, String file) {
        try {
            return file.replace('\\', '/').endsWith("/" + type.sourcePaths("Java").get(0).replace('\\', '/'));
        } catch (AbsentInformationException unknown) {
            return false;
        }
    }

    private void listen() {
        try {
            while (true) {
                EventSet set = vm.eventQueue().remove();
                boolean stays = false;
                for (Event event : set) {
                    stays |= heard(event);
                }
                if (!stays) {
                    set.resume();
                }
            }
        } catch (InterruptedException | VMDisconnectedException over) {
            exited();
        }
    }

    /** Take an event; true where the program is to stand still for it. */
    private boolean heard(Event event) {
        if (event instanceof VMDeathEvent) {
            ended = true;
        }
        if (event instanceof ClassPrepareEvent) {
            enter(((ClassPrepareEvent) event).referenceType());
            for (Place place : new ArrayList<>(places.values())) {
                if (bind(place, ((ClassPrepareEvent) event).referenceType())) {
                    wire.event("breakpoint", Json.of("reason", "changed", "breakpoint", told(place)));
                }
            }
            return false;
        }
        if (event instanceof BreakpointEvent) {
            return hit((BreakpointEvent) event);
        }
        if (event instanceof StepEvent) {
            vm.eventRequestManager().deleteEventRequest(event.request());
            return stopped("step", ((StepEvent) event).thread(), null, null);
        }
        if (event instanceof ExceptionEvent) {
            Location caught = ((ExceptionEvent) event).catchLocation();
            if (caught != null && !isOurs(caught.declaringType().name())) {
                // The JDK raises and catches many of its own.
                return false;
            }
            thrown = (ExceptionEvent) event;
            return stopped("exception", thrown.thread(), thrown.exception().referenceType().name(), null);
        }
        return false;
    }

    /** Stop at the first line of `main`, once its class is loaded. */
    private void enter(ReferenceType type) {
        if (entry == null || !type.name().equals(entry)) {
            return;
        }
        for (Method method : type.methodsByName("main")) {
            if (method.location() != null) {
                BreakpointRequest request = vm.eventRequestManager().createBreakpointRequest(method.location());
                request.setSuspendPolicy(EventRequest.SUSPEND_ALL);
                request.enable();
            }
        }
        entry = null;
    }

    private boolean hit(BreakpointEvent event) {
        Place place = (Place) event.request().getProperty("place");
        if (place == null) {
            vm.eventRequestManager().deleteEventRequest(event.request());
            return stopped("entry", event.thread(), null, null);
        }
        try {
            if (place.condition != null && !"true".equals(Values.text(
                Evaluator.evaluate(vm, event.thread(), 0, place.condition)))) {
                return false;
            }
        } catch (Exception error) {
            return stopped("breakpoint", event.thread(), "its condition failed: " + error.getMessage(), place);
        }
        place.hits++;
        if (place.hitCondition != null && !counts(place)) {
            return false;
        }
        if (place.logMessage != null) {
            wire.event("output", Json.of("category", "console", "output", message(place, event.thread()) + "\n"));
            return false;
        }
        clearSteps(event.thread());
        return stopped("breakpoint", event.thread(), null, place);
    }

    private static boolean counts(Place place) {
        String text = place.hitCondition.replace(" ", "");
        int count = Integer.parseInt(text.replaceAll("\\D", ""));
        if (text.startsWith(">=")) {
            return place.hits >= count;
        }
        if (text.startsWith(">")) {
            return place.hits > count;
        }
        if (text.startsWith("<=")) {
            return place.hits <= count;
        }
        if (text.startsWith("<")) {
            return place.hits < count;
        }
        return text.startsWith("%") ? place.hits % count == 0 : place.hits == count;
    }

    private String message(Place place, ThreadReference thread) {
        StringBuilder told = new StringBuilder();
        for (String piece : place.logMessage.split("(?=\\{)|(?<=\\})")) {
            if (piece.startsWith("{") && piece.endsWith("}")) {
                try {
                    told.append(Values.text(
                        Evaluator.evaluate(vm, thread, 0, piece.substring(1, piece.length() - 1))));
                } catch (Exception error) {
                    told.append('<').append(error.getMessage()).append('>');
                }
            } else {
                told.append(piece);
            }
        }
        return told.toString();
    }

    private boolean stopped(String reason, ThreadReference thread, String text, Place place) {
        halted = thread;
        wire.event("stopped", Json.of("reason", reason, "threadId", thread.uniqueID(), "text", text,
            "allThreadsStopped", true, "hitBreakpointIds", place == null ? null : List.of(place.id)));
        return true;
    }

    private void exited() {
        try {
            if (vm.process() != null) {
                int code = vm.process().waitFor();
                // A machine that ends by itself says so before; of one that is killed, Java adds 128 to the signal.
                boolean killed = !ended && code > 128;
                wire.event("exited", killed ? Json.of("signal", code - 128) : Json.of("exitCode", code));
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        wire.event("terminated", null);
    }

    private void resume() {
        references.clear();
        frames.clear();
        thrown = null;
        vm.resume();
    }

    private Map<String, Object> step(Map<String, Object> given, int depth) {
        ThreadReference thread = thread(given);
        clearSteps(thread);
        StepRequest request = vm.eventRequestManager().createStepRequest(thread, StepRequest.STEP_LINE, depth);
        for (String other : NOT_OURS) {
            request.addClassExclusionFilter(other);
        }
        request.addCountFilter(1);
        request.setSuspendPolicy(EventRequest.SUSPEND_ALL);
        request.enable();
        resume();
        return null;
    }

    private void clearSteps(ThreadReference thread) {
        for (StepRequest request : new ArrayList<>(vm.eventRequestManager().stepRequests())) {
            if (request.thread().equals(thread)) {
                vm.eventRequestManager().deleteEventRequest(request);
            }
        }
    }

    private Map<String, Object> pause(Map<String, Object> given) {
        vm.suspend();
        ThreadReference thread = mainThread();
        stopped("pause", thread, null, null);
        return null;
    }

    private ThreadReference mainThread() {
        for (ThreadReference thread : vm.allThreads()) {
            if (thread.name().equals("main")) {
                return thread;
            }
        }
        return vm.allThreads().get(0);
    }

    private ThreadReference thread(Map<String, Object> given) {
        for (ThreadReference thread : vm.allThreads()) {
            if (Long.valueOf(thread.uniqueID()).equals(given.get("threadId"))) {
                return thread;
            }
        }
        throw new IllegalArgumentException("There is no such thread.");
    }

    private Map<String, Object> threads() {
        List<Object> told = new ArrayList<>();
        for (ThreadReference thread : vm.allThreads()) {
            told.add(Json.of("id", thread.uniqueID(), "name", thread.name()));
        }
        return Json.of("threads", told);
    }

    private Map<String, Object> stack(Map<String, Object> given) throws Exception {
        ThreadReference thread = thread(given);
        int start = ((Long) given.getOrDefault("startFrame", 0L)).intValue();
        int levels = ((Long) given.getOrDefault("levels", 0L)).intValue();
        int total = thread.frameCount();
        int end = levels == 0 ? total : Math.min(total, start + levels);
        List<Object> told = new ArrayList<>();
        for (int index = start; index < end; index++) {
            told.add(frame(thread, index));
        }
        return Json.of("stackFrames", told, "totalFrames", total);
    }

    private Map<String, Object> frame(ThreadReference thread, int index) throws Exception {
        Location location = thread.frame(index).location();
        int id = ++numbers;
        frames.put(id, new int[] {(int) thread.uniqueID(), index});
        String type = location.declaringType().name();
        return Json.of("id", id, "name", type.substring(type.lastIndexOf('.') + 1) + "." + location.method().name(),
            "line", Math.max(0, location.lineNumber()), "column", 1, "source", source(location),
            "presentationHint", isOurs(type) ? null : "subtle");
    }

    private static boolean isOurs(String type) {
        for (String other : NOT_OURS) {
            if (type.startsWith(other.substring(0, other.length() - 1))) {
                return false;
            }
        }
        return true;
    }

    private Map<String, Object> source(Location location) {
        try {
            String path = location.sourcePath();
            for (Place place : places.values()) {
                if (place.file.endsWith("/" + path)) {
                    return Json.of("name", location.sourceName(), "path", place.file);
                }
            }
            return Json.of("name", location.sourceName(), "path", Sources.find(path));
        } catch (AbsentInformationException unknown) {
            return null;
        }
    }

    private Map<String, Object> scopes(Map<String, Object> given) throws Exception {
        int[] frame = known(given);
        return Json.of("scopes", List.of(
            Json.of("name", "Locals", "presentationHint", "locals", "variablesReference", keep(frame))));
    }

    private int[] known(Map<String, Object> given) {
        int[] frame = frames.get(((Long) given.get("frameId")).intValue());
        if (frame == null) {
            throw new IllegalArgumentException("That frame is from an earlier stop.");
        }
        return frame;
    }

    private int keep(Object value) {
        int id = ++numbers;
        references.put(id, value);
        return id;
    }

    private Map<String, Object> variables(Map<String, Object> given) throws Exception {
        Object kept = references.get(((Long) given.get("variablesReference")).intValue());
        if (kept == null) {
            throw new IllegalArgumentException("That value is from an earlier stop.");
        }
        List<Object> told = new ArrayList<>();
        if (kept instanceof int[]) {
            locals((int[]) kept, told);
        } else {
            Values.parts((ObjectReference) kept, halted).forEach((name, value) -> told.add(variable(name, value)));
        }
        return Json.of("variables", told);
    }

    private void locals(int[] frame, List<Object> told) throws Exception {
        StackFrame found = threadOf(frame).frame(frame[1]);
        // All are read before one is shown: a collection that is asked for its elements makes the frame stale.
        Map<String, Value> values = new LinkedHashMap<>();
        if (found.thisObject() != null) {
            values.put("this", found.thisObject());
        }
        try {
            for (LocalVariable local : found.visibleVariables()) {
                values.put(local.name(), found.getValue(local));
            }
        } catch (AbsentInformationException unknown) {
            told.add(Json.of("name", "(locals)", "value", "compile with `javac -g` to see them", "variablesReference", 0));
        }
        values.forEach((name, value) -> told.add(variable(name, value)));
    }

    private ThreadReference threadOf(int[] frame) {
        return thread(Json.of("threadId", (long) frame[0]));
    }

    private Map<String, Object> variable(String name, Value value) {
        boolean plain = !(value instanceof ObjectReference) || value instanceof StringReference;
        return Json.of("name", name, "evaluateName", name, "value", Values.text(value, halted), "type", Values.type(value),
            "variablesReference", plain ? 0 : keep(value));
    }

    private Map<String, Object> evaluate(Map<String, Object> given) throws Exception {
        int[] frame = known(given);
        String text = String.valueOf(given.get("expression"));
        Map<String, Object> told = variable(text, Evaluator.evaluate(vm, threadOf(frame), frame[1], text));
        told.put("result", told.get("value"));
        return told;
    }

    private Map<String, Object> setExpression(Map<String, Object> given) throws Exception {
        int[] frame = known(given);
        ThreadReference thread = threadOf(frame);
        Value value = Evaluator.evaluate(vm, thread, frame[1], String.valueOf(given.get("value")));
        Evaluator.assign(vm, thread, frame[1], String.valueOf(given.get("expression")), value);
        return variable(String.valueOf(given.get("expression")), value);
    }

    private Map<String, Object> exceptionInfo() {
        if (thrown == null) {
            throw new IllegalStateException("The program did not stop at an exception.");
        }
        ObjectReference exception = thrown.exception();
        Field message = exception.referenceType().fieldByName("detailMessage");
        Value text = message == null ? null : exception.getValue(message);
        String name = exception.referenceType().name();
        String told = text instanceof StringReference ? ((StringReference) text).value() : made(exception, name);
        return Json.of("exceptionId", name, "description", told, "breakMode", "unhandled",
            "details", Json.of("typeName", name, "message", told));
    }

    /** The message that the virtual machine makes on demand, as for a null pointer; of its own classes only. */
    private String made(ObjectReference exception, String name) {
        if (!name.startsWith("java.lang.")) {
            return "";
        }
        try {
            Method method = exception.referenceType().methodsByName("getMessage", "()Ljava/lang/String;").get(0);
            Value text = exception.invokeMethod(thrown.thread(), method, List.of(),
                ObjectReference.INVOKE_SINGLE_THREADED);
            return text instanceof StringReference ? ((StringReference) text).value() : "";
        } catch (Exception unknown) {
            return "";
        }
    }

    private void hear(InputStream stream, String category) {
        Thread thread = new Thread(() -> {
            byte[] chunk = new byte[8192];
            try {
                for (int size = stream.read(chunk); size >= 0; size = stream.read(chunk)) {
                    wire.event("output", Json.of("category", category, "output",
                        new String(chunk, 0, size, StandardCharsets.UTF_8)));
                }
            } catch (IOException gone) {
                // The program has ended; what it wrote until then was told.
                return;
            }
        }, category);
        thread.setDaemon(true);
        thread.start();
    }

    private void end(boolean kill) {
        try {
            if (vm != null && kill && vm.process() != null) {
                vm.exit(143);
            } else if (vm != null) {
                vm.dispose();
            }
        } catch (VMDisconnectedException over) {
            // That is what was wanted.
            return;
        }
    }
}
