import com.sun.jdi.*;
import com.sun.jdi.event.*;
import com.sun.jdi.request.*;
import java.util.*;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Consumer;

/** One virtual machine that may run tests: their begin and end, their lines, and what was thrown in them. */
final class TestMachine extends Thread {
    private static final String PLATFORM = "org.junit.platform.launcher.TestExecutionListener";
    private static final String NOTIFIER = "org.junit.runner.notification.RunNotifier";
    private static final int MOST_LINES = 60_000;
    private static final int MOST_THROWN = 200;
    private static final int MOST_FRAMES = 6;
    private static final int MOST_STACK = 300;
    private static final int MOST_VALUES = 16;
    private final VirtualMachine vm;
    private final Project project;
    private final Consumer<Map<String, Object>> report;
    private final long time;
    /** Calls methods of the program, during which events go on. */
    private final ExecutorService worker = Executors.newSingleThreadExecutor(task -> {
        Thread thread = new Thread(task, "worker");
        thread.setDaemon(true);
        return thread;
    });
    private final List<BreakpointRequest> places = new ArrayList<>();
    private final Set<BreakpointRequest> passed = new LinkedHashSet<>();
    private final Map<String, Set<Integer>> outside = new TreeMap<>();
    private boolean platform;
    private boolean counts;
    private long until;
    private Running running;

    /** A test between its begin and its end. */
    private static final class Running {
        String key;
        Map<String, Object> told;
        boolean counted;
        ObjectReference failure;
        final Map<String, Set<Integer>> lines = new TreeMap<>();
        final Map<Long, Map<String, Object>> thrown = new LinkedHashMap<>();
    }

    TestMachine(VirtualMachine vm, Project project, Consumer<Map<String, Object>> report, double seconds) {
        super("machine");
        this.vm = vm;
        this.project = project;
        this.report = report;
        this.time = (long) (seconds * 1e9);
        this.counts = seconds > 0;
        setDaemon(true);
    }

    @Override
    public void run() {
        try {
            for (String filter : project.filters()) {
                watch(filter);
            }
            watch(PLATFORM);
            watch(NOTIFIER);
            while (true) {
                EventSet set = vm.eventQueue().remove();
                List<Event> slow = new ArrayList<>();
                for (Event event : set) {
                    if (!quick(event)) {
                        slow.add(event);
                    }
                }
                if (slow.isEmpty()) {
                    set.resume();
                } else {
                    worker.execute(() -> take(slow, set));
                }
            }
        } catch (InterruptedException | VMDisconnectedException over) {
            worker.shutdown();
        }
    }

    private void watch(String filter) {
        ClassPrepareRequest request = vm.eventRequestManager().createClassPrepareRequest();
        request.addClassFilter(filter);
        prepare(request);
    }

    private static void prepare(ClassPrepareRequest request) {
        request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
        request.enable();
    }

    /** Take an event that needs no method of the program; false for others. */
    private boolean quick(Event event) {
        if (event instanceof ClassPrepareEvent) {
            prepared(((ClassPrepareEvent) event).referenceType());
            return true;
        }
        if (event instanceof BreakpointEvent && event.request().getProperty("mark") == null) {
            event.request().disable();
            ran((BreakpointRequest) event.request());
            return true;
        }
        return !(event instanceof BreakpointEvent || event instanceof ExceptionEvent);
    }

    private void take(List<Event> events, EventSet set) {
        try {
            for (Event event : events) {
                if (event instanceof ExceptionEvent) {
                    thrown((ExceptionEvent) event);
                } else {
                    marked((BreakpointEvent) event, (String) event.request().getProperty("mark"));
                }
            }
        } catch (VMDisconnectedException over) {
            return;
        } catch (Exception error) {
            // A framework of another shape than the ones known: what it says of this test is lost, the tests are not.
            report.accept(Json.of("kind", "problem", "text", String.valueOf(error)));
        }
        try {
            set.resume();
        } catch (VMDisconnectedException over) {
            return;
        }
    }

    private void prepared(ReferenceType type) {
        if (type.name().equals(PLATFORM)) {
            platform = true;
            ClassPrepareRequest request = vm.eventRequestManager().createClassPrepareRequest();
            request.addClassFilter(type);
            prepare(request);
        } else if (type.name().equals(NOTIFIER)) {
            mark(type, List.of("fireTestStarted", "fireTestFailure", "fireTestFinished"));
            watchExceptions();
        } else if (type instanceof ClassType && is((ClassType) type, PLATFORM)) {
            mark(type, List.of("executionStarted", "executionFinished"));
            watchExceptions();
        }
        String file = project.file(type);
        if (file != null) {
            watchExceptions();
            count(type, file);
        }
    }

    private static boolean is(ClassType type, String wanted) {
        return type.allInterfaces().stream().anyMatch(each -> each.name().equals(wanted));
    }

    private void mark(ReferenceType type, List<String> names) {
        for (Method method : type.methods()) {
            if (names.contains(method.name()) && method.location() != null && !method.isBridge()) {
                BreakpointRequest request = vm.eventRequestManager().createBreakpointRequest(method.location());
                request.putProperty("mark", method.name());
                request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
                request.enable();
            }
        }
    }

    /** See every exception, those that are caught too, from the first class on that can throw or report one. */
    private void watchExceptions() {
        if (vm.eventRequestManager().exceptionRequests().isEmpty()) {
            ExceptionRequest request = vm.eventRequestManager().createExceptionRequest(null, true, true);
            request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
            request.enable();
        }
    }

    /** Note the lines of a class, and stop at each once a test. */
    private synchronized void count(ReferenceType type, String file) {
        Map<String, Object> functions = new LinkedHashMap<>();
        for (Method method : type.methods()) {
            if (method.isAbstract() || method.isNative() || method.isBridge()) {
                continue;
            }
            try {
                Set<Integer> lines = new HashSet<>();
                for (Location each : method.allLineLocations()) {
                    functions.put(String.valueOf(each.lineNumber()), name(method));
                    if (counts && places.size() < MOST_LINES && lines.add(each.lineNumber())) {
                        stop(each, file);
                    }
                }
            } catch (AbsentInformationException unknown) {
                continue;
            }
        }
        report.accept(Json.of("kind", "class", "file", file, "functions", functions));
    }

    private void stop(Location at, String file) {
        BreakpointRequest request = vm.eventRequestManager().createBreakpointRequest(at);
        request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
        request.putProperty("file", file);
        request.enable();
        places.add(request);
    }

    private synchronized void ran(BreakpointRequest request) {
        passed.add(request);
        Map<String, Set<Integer>> lines = running == null ? outside : running.lines;
        lines.computeIfAbsent((String) request.getProperty("file"), key -> new TreeSet<>())
            .add(request.location().lineNumber());
    }

    private void marked(BreakpointEvent event, String mark) throws Exception {
        List<Value> given = event.thread().frame(0).getArgumentValues();
        Caller caller = new Caller(event.thread());
        if (mark.startsWith("execution")) {
            ObjectReference test = (ObjectReference) given.get(0);
            boolean single = ((BooleanValue) caller.call(test, "isTest")).value();
            ObjectReference result = mark.equals("executionStarted") ? null : (ObjectReference) given.get(1);
            ObjectReference failure = result == null ? null : caller.optional(caller.call(result, "getThrowable"));
            String status = result == null ? "" : caller.text(caller.call(result, "getStatus"), "name");
            if (single && result == null) {
                begin(caller.text(test, "getUniqueId"), () -> describe(caller, test));
            } else if (single) {
                end(caller, caller.text(test, "getUniqueId"), status.equals("FAILED"), !status.equals("ABORTED"), failure);
            } else if (status.equals("FAILED")) {
                // Such as a method that was to run before all tests.
                begin(caller.text(test, "getUniqueId"), () -> describe(caller, test));
                end(caller, caller.text(test, "getUniqueId"), true, true, failure);
            }
        } else if (!platform) {
            notified(caller, mark, (ObjectReference) given.get(0));
        }
    }

    /** An event of JUnit 4. */
    private void notified(Caller caller, String mark, ObjectReference given) throws Exception {
        boolean failed = mark.equals("fireTestFailure");
        ObjectReference test = failed ? (ObjectReference) caller.call(given, "getDescription") : given;
        String key = caller.text(test, "getDisplayName");
        boolean alone = failed && running == null;
        if (mark.equals("fireTestStarted") || alone) {
            begin(key, () -> Json.of("class", caller.text(test, "getClassName"), "method",
                caller.text(test, "getMethodName"), "display", key));
        }
        if (failed && running != null && running.failure == null) {
            running.failure = (ObjectReference) caller.call(given, "getException");
        }
        if (mark.equals("fireTestFinished") || alone) {
            end(caller, key, running != null && running.failure != null, true, running == null ? null : running.failure);
        }
    }

    private interface Description {
        Map<String, Object> read() throws Exception;
    }

    private static Map<String, Object> describe(Caller caller, ObjectReference test) throws Exception {
        ObjectReference source = caller.optional(caller.call(test, "getSource"));
        String kind = source == null ? "" : source.referenceType().name();
        boolean named = kind.endsWith(".MethodSource") || kind.endsWith(".ClassSource");
        return Json.of("class", named ? caller.text(source, "getClassName") : null,
            "method", kind.endsWith(".MethodSource") ? caller.text(source, "getMethodName") : null,
            "display", caller.text(test, "getDisplayName"));
    }

    private void begin(String key, Description description) throws Exception {
        if (running != null && running.key.equals(key)) {
            return;
        }
        Running test = new Running();
        test.key = key;
        test.told = description.read();
        if (until == 0) {
            until = System.nanoTime() + time;
        }
        if (counts && System.nanoTime() > until) {
            counts = false;
            places.forEach(EventRequest::disable);
        }
        synchronized (this) {
            test.counted = counts;
            if (counts) {
                passed.forEach(EventRequest::enable);
            }
            passed.clear();
            running = test;
        }
    }

    private void end(Caller caller, String key, boolean failed, boolean ended, ObjectReference failure)
            throws Exception {
        Running test;
        synchronized (this) {
            if (running == null || !running.key.equals(key)) {
                return;
            }
            test = running;
            running = null;
        }
        if (!ended) {
            return;
        }
        Map<String, Object> told = new LinkedHashMap<>(test.told);
        told.put("kind", "test");
        told.put("failed", failed);
        Object type = told.get("class");
        List<ReferenceType> found = type == null ? List.of() : vm.classesByName(String.valueOf(type));
        told.put("file", found.isEmpty() ? null : project.file(found.get(0)));
        if (test.counted) {
            outside.forEach((file, lines) -> test.lines.computeIfAbsent(file, each -> new TreeSet<>()).addAll(lines));
            Map<String, Object> lines = new LinkedHashMap<>();
            test.lines.forEach((file, numbers) -> lines.put(file, new ArrayList<>(numbers)));
            told.put("lines", lines);
        }
        if (failed) {
            told.put("errors", errors(caller, failure, test.thrown));
            told.put("thrown", new ArrayList<>(test.thrown.values()));
        }
        report.accept(told);
    }

    /** An exception and its causes, each with its own frames where it was seen as it was thrown. */
    private List<Object> errors(Caller caller, ObjectReference failure, Map<Long, Map<String, Object>> thrown)
            throws Exception {
        List<Object> told = new ArrayList<>();
        Set<Long> known = new HashSet<>();
        for (ObjectReference each = failure; each != null && known.add(each.uniqueID());) {
            Map<String, Object> seen = thrown.remove(each.uniqueID());
            Map<String, Object> error = Json.of("type", each.referenceType().name(), "message",
                caller.text(each, "getMessage"), "frames", seen == null ? stack(caller, each) : seen.get("frames"),
                "seen", seen != null);
            told.add(error);
            each = (ObjectReference) caller.call(each, "getCause");
        }
        return told;
    }

    /** The frames of the user's that an exception remembers, without values. */
    private List<Object> stack(Caller caller, ObjectReference error) throws Exception {
        List<Object> told = new ArrayList<>();
        for (Value each : ((ArrayReference) caller.call(error, "getStackTrace")).getValues()) {
            ObjectReference element = (ObjectReference) each;
            String type = Values.text(field(element, "declaringClass")).replace("\"", "");
            String source = Values.text(field(element, "fileName")).replace("\"", "");
            String file = project.file(type, source);
            int line = ((IntegerValue) field(element, "lineNumber")).value();
            if (file != null && line > 0 && told.size() < MOST_FRAMES) {
                told.add(Json.of("file", file, "line", line, "function",
                    name(type, Values.text(field(element, "methodName")).replace("\"", "")), "values", Json.of()));
            }
        }
        return told;
    }

    private static Value field(ObjectReference value, String name) {
        return value.getValue(value.referenceType().fieldByName(name));
    }

    private void thrown(ExceptionEvent event) throws Exception {
        boolean uncaught = event.catchLocation() == null;
        Running test;
        synchronized (this) {
            test = running;
        }
        long id = event.exception().uniqueID();
        if (test == null ? !uncaught : test.thrown.size() >= MOST_THROWN || test.thrown.containsKey(id)) {
            return;
        }
        List<Object> frames = frames(event.thread());
        if (frames.isEmpty()) {
            return;
        }
        Value message = field(event.exception(), "detailMessage");
        boolean own = !uncaught && project.file(event.catchLocation().declaringType()) != null;
        Map<String, Object> told = Json.of("type", event.exception().referenceType().name(), "message",
            message instanceof StringReference ? ((StringReference) message).value() : null, "frames", frames,
            "caught", own);
        if (test != null) {
            test.thrown.put(id, told);
        } else {
            told.put("kind", "uncaught");
            told.put("errors", errors(new Caller(event.thread()), event.exception(), new HashMap<>(Map.of(id, told))));
            told.put("thread", event.thread().name());
            report.accept(told);
        }
    }

    /** The user's frames of a thread, innermost first, with their values. */
    private List<Object> frames(ThreadReference thread) throws IncompatibleThreadStateException {
        List<Object> told = new ArrayList<>();
        List<Map<String, Object>> shown = new ArrayList<>();
        Location before = null;
        for (StackFrame frame : thread.frames(0, Math.min(thread.frameCount(), MOST_STACK))) {
            Location at = frame.location();
            String file = project.file(at.declaringType());
            // Of a recursion the innermost frame is enough.
            boolean again = before != null && at.method().equals(before.method())
                && at.lineNumber() == before.lineNumber();
            before = at;
            if (file != null && !again && told.size() < MOST_FRAMES && at.lineNumber() > 0) {
                shown.add(values(frame));
                told.add(Json.of("file", file, "line", at.lineNumber(), "function", name(at.method()), "values",
                    shown.get(shown.size() - 1)));
            }
        }
        // After all frames were read: a collection that is asked for its elements makes them stale.
        for (Map<String, Object> each : shown) {
            each.replaceAll((name, value) -> Values.text((Value) value, thread));
            // An object without fields of its own says nothing.
            each.computeIfPresent("this", (name, text) -> String.valueOf(text).endsWith("{}") ? null : text);
        }
        return told;
    }

    private static Map<String, Object> values(StackFrame frame) {
        Map<String, Object> found = new LinkedHashMap<>();
        try {
            for (LocalVariable local : frame.visibleVariables()) {
                if (found.size() < MOST_VALUES) {
                    found.put(local.name(), frame.getValue(local));
                }
            }
        } catch (AbsentInformationException unknown) {
            found.clear();
        }
        ObjectReference own = frame.thisObject();
        if (own != null && !own.referenceType().allFields().isEmpty()) {
            found.put("this", own);
        }
        return found;
    }

    private static String name(Method method) {
        return name(method.declaringType().name(), method.name());
    }

    /** As the source has it: a lambda by the method around it, a constructor by its class. */
    private static String name(String type, String method) {
        String owner = type.substring(type.lastIndexOf('.') + 1).replace('$', '.');
        String[] parts = method.split("\\$");
        String called = method.startsWith("lambda$") && parts.length > 1 ? parts[1] : method;
        return switch (called) {
            case "<init>", "new" -> "new " + owner;
            case "<clinit>", "static" -> owner;
            default -> owner + "." + called;
        };
    }

    /** Calls methods of the program in a thread that stands at an event. */
    private static final class Caller {
        private final ThreadReference thread;

        Caller(ThreadReference thread) {
            this.thread = thread;
        }

        Value call(ObjectReference object, String name) throws Exception {
            for (Method method : object.referenceType().methodsByName(name)) {
                if (method.argumentTypeNames().isEmpty() && !method.isAbstract()) {
                    return object.invokeMethod(thread, method, List.of(), ObjectReference.INVOKE_SINGLE_THREADED);
                }
            }
            throw new IllegalStateException(object.referenceType().name() + " has no method " + name);
        }

        /** The text that a method returns; empty where it returns none, or throws. */
        String text(Value object, String name) throws Exception {
            try {
                Value found = object == null ? null : call((ObjectReference) object, name);
                return found instanceof StringReference ? ((StringReference) found).value() : "";
            } catch (InvocationException thrown) {
                return "";
            }
        }

        /** What is in an `Optional`; null where nothing is. */
        ObjectReference optional(Value value) throws Exception {
            boolean some = ((BooleanValue) call((ObjectReference) value, "isPresent")).value();
            return some ? (ObjectReference) call((ObjectReference) value, "get") : null;
        }
    }
}
