import com.sun.jdi.*;
import java.util.ArrayList;
import java.util.List;

/** Expressions in a frame: names, fields, items, operators, and calls of methods where the program may run for them. */
final class Evaluator {
    private static final String[][] LEVELS = {
        {"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}};
    private final VirtualMachine vm;
    private final ThreadReference thread;
    private final int frame;
    private final List<String> tokens;
    private int at;

    private Evaluator(VirtualMachine vm, ThreadReference thread, int frame, String text) {
        this.vm = vm;
        this.thread = thread;
        this.frame = frame;
        this.tokens = tokens(text);
    }

    static Value evaluate(VirtualMachine vm, ThreadReference thread, int frame, String text) throws Exception {
        Evaluator evaluator = new Evaluator(vm, thread, frame, text);
        Value value = evaluator.level(0);
        if (evaluator.at != evaluator.tokens.size()) {
            throw new IllegalArgumentException("`" + evaluator.tokens.get(evaluator.at) + "` was not expected");
        }
        return value;
    }

    /** Give a name, a field or an item of an array a new value. */
    static void assign(VirtualMachine vm, ThreadReference thread, int frame, String place, Value value)
        throws Exception {
        StackFrame where = thread.frame(frame);
        LocalVariable local = place.matches("\\w+") ? where.visibleVariableByName(place) : null;
        if (local != null) {
            where.setValue(local, fitting(vm, local.type().name(), value));
            return;
        }
        if (place.endsWith("]")) {
            int open = place.lastIndexOf('[');
            ArrayReference array = (ArrayReference) evaluate(vm, thread, frame, place.substring(0, open));
            Value index = evaluate(vm, thread, frame, place.substring(open + 1, place.length() - 1));
            array.setValue(((PrimitiveValue) index).intValue(), value);
            return;
        }
        int dot = place.lastIndexOf('.');
        ObjectReference owner = dot < 0 ? where.thisObject()
            : (ObjectReference) evaluate(vm, thread, frame, place.substring(0, dot));
        Field field = owner == null ? null : owner.referenceType().fieldByName(place.substring(dot + 1));
        if (field == null) {
            throw new IllegalArgumentException("there is no `" + place + "` here");
        }
        owner.setValue(field, fitting(vm, field.typeName(), value));
    }

    private static Value fitting(VirtualMachine vm, String type, Value value) {
        if (!(value instanceof PrimitiveValue)) {
            return value;
        }
        PrimitiveValue number = (PrimitiveValue) value;
        switch (type) {
            case "long":
                return vm.mirrorOf(number.longValue());
            case "double":
                return vm.mirrorOf(number.doubleValue());
            case "float":
                return vm.mirrorOf(number.floatValue());
            case "short":
                return vm.mirrorOf(number.shortValue());
            case "byte":
                return vm.mirrorOf(number.byteValue());
            default:
                return value;
        }
    }

    private Value level(int depth) throws Exception {
        if (depth == LEVELS.length) {
            return unary();
        }
        Value left = level(depth + 1);
        for (String sign = taken(LEVELS[depth]); sign != null; sign = taken(LEVELS[depth])) {
            left = combined(sign, left, level(depth + 1));
        }
        return left;
    }

    private Value unary() throws Exception {
        if (take("!")) {
            return vm.mirrorOf(!truth(unary()));
        }
        if (take("-")) {
            return combined("-", vm.mirrorOf(0), unary());
        }
        return postfix(primary());
    }

    private Value primary() throws Exception {
        String token = next();
        if (token.equals("(")) {
            Value value = level(0);
            need(")");
            return value;
        }
        char first = token.charAt(0);
        if (first == '"') {
            return vm.mirrorOf((String) Json.read(token));
        }
        if (first == '\'') {
            return vm.mirrorOf(token.charAt(1));
        }
        if (Character.isDigit(first)) {
            return number(token);
        }
        switch (token) {
            case "true":
            case "false":
                return vm.mirrorOf(token.equals("true"));
            case "null":
                return null;
            case "this":
                return thread.frame(frame).thisObject();
            default:
                return named(token);
        }
    }

    private Value number(String token) {
        if (token.endsWith("L") || token.endsWith("l")) {
            return vm.mirrorOf(Long.parseLong(token.substring(0, token.length() - 1)));
        }
        if (token.contains(".")) {
            return vm.mirrorOf(Double.parseDouble(token));
        }
        return vm.mirrorOf(Integer.parseInt(token));
    }

    private Value named(String name) throws Exception {
        StackFrame where = thread.frame(frame);
        LocalVariable local = where.visibleVariableByName(name);
        if (local != null) {
            return where.getValue(local);
        }
        ObjectReference self = where.thisObject();
        ReferenceType kind = where.location().declaringType();
        if (peek("(")) {
            return called(self, kind, name);
        }
        Field field = kind.fieldByName(name);
        if (field != null && field.isStatic()) {
            return kind.getValue(field);
        }
        if (field != null && self != null) {
            return self.getValue(field);
        }
        for (ReferenceType type : vm.allClasses()) {
            String full = type.name();
            if ((full.equals(name) || full.endsWith("." + name)) && take(".")) {
                return ofClass(type, next());
            }
        }
        throw new IllegalArgumentException("there is no `" + name + "` here");
    }

    private Value ofClass(ReferenceType type, String member) throws Exception {
        if (peek("(")) {
            return called(null, type, member);
        }
        Field field = type.fieldByName(member);
        if (field == null || !field.isStatic()) {
            throw new IllegalArgumentException("`" + type.name() + "` has no static `" + member + "`");
        }
        return type.getValue(field);
    }

    private Value postfix(Value value) throws Exception {
        Value found = value;
        while (true) {
            if (take(".")) {
                found = member(found, next());
            } else if (take("[")) {
                int index = ((PrimitiveValue) level(0)).intValue();
                need("]");
                found = item(found, index);
            } else {
                return found;
            }
        }
    }

    private Value item(Value value, int index) {
        if (value instanceof ArrayReference) {
            return ((ArrayReference) value).getValue(index);
        }
        Value found = Values.parts((ObjectReference) need(value), null).get("[" + index + "]");
        if (found == null) {
            throw new IllegalArgumentException("there is no item " + index);
        }
        return found;
    }

    private Value member(Value value, String name) throws Exception {
        ObjectReference object = (ObjectReference) need(value);
        if (object instanceof ArrayReference && name.equals("length")) {
            return vm.mirrorOf(((ArrayReference) object).length());
        }
        if (peek("(")) {
            return called(object, object.referenceType(), name);
        }
        Field field = object.referenceType().fieldByName(name);
        if (field == null) {
            throw new IllegalArgumentException("`" + Values.type(object) + "` has no field `" + name + "`");
        }
        return object.getValue(field);
    }

    private Value called(ObjectReference object, ReferenceType kind, String name) throws Exception {
        List<Value> given = new ArrayList<>();
        need("(");
        if (!take(")")) {
            do {
                given.add(level(0));
            } while (take(","));
            need(")");
        }
        for (Method method : kind.methodsByName(name)) {
            if (method.argumentTypeNames().size() == given.size() && !method.isAbstract()) {
                return invoked(object, kind, method, given);
            }
        }
        throw new IllegalArgumentException("`" + kind.name() + "` has no `" + name + "` with " + given.size() + " arguments");
    }

    private Value invoked(ObjectReference object, ReferenceType kind, Method method, List<Value> given)
        throws Exception {
        try {
            if (method.isStatic()) {
                return ((ClassType) kind).invokeMethod(thread, method, given, ClassType.INVOKE_SINGLE_THREADED);
            }
            return need(object) == null ? null
                : object.invokeMethod(thread, method, given, ObjectReference.INVOKE_SINGLE_THREADED);
        } catch (InvocationException thrown) {
            throw new IllegalArgumentException("it threw " + Values.text(thrown.exception()));
        }
    }

    private Value combined(String sign, Value left, Value right) {
        switch (sign) {
            case "&&":
                return vm.mirrorOf(truth(left) && truth(right));
            case "||":
                return vm.mirrorOf(truth(left) || truth(right));
            case "==":
                return vm.mirrorOf(same(left, right));
            case "!=":
                return vm.mirrorOf(!same(left, right));
            default:
                return calculated(sign, left, right);
        }
    }

    private Value calculated(String sign, Value left, Value right) {
        if (sign.equals("+") && (left instanceof StringReference || right instanceof StringReference)) {
            return vm.mirrorOf(plain(left) + plain(right));
        }
        boolean floating = isFloating(left) || isFloating(right);
        double a = number(left).doubleValue();
        double b = number(right).doubleValue();
        switch (sign) {
            case "<":
                return vm.mirrorOf(a < b);
            case ">":
                return vm.mirrorOf(a > b);
            case "<=":
                return vm.mirrorOf(a <= b);
            case ">=":
                return vm.mirrorOf(a >= b);
            default:
                return floating ? vm.mirrorOf(floating(sign, a, b)) : whole(sign, left, right);
        }
    }

    private Value whole(String sign, Value left, Value right) {
        long a = number(left).longValue();
        long b = number(right).longValue();
        boolean wide = left instanceof LongValue || right instanceof LongValue;
        long found;
        switch (sign) {
            case "+":
                found = a + b;
                break;
            case "-":
                found = a - b;
                break;
            case "*":
                found = a * b;
                break;
            case "/":
                found = a / b;
                break;
            default:
                found = a % b;
        }
        return wide ? vm.mirrorOf(found) : vm.mirrorOf((int) found);
    }

    private static double floating(String sign, double a, double b) {
        switch (sign) {
            case "+":
                return a + b;
            case "-":
                return a - b;
            case "*":
                return a * b;
            case "/":
                return a / b;
            default:
                return a % b;
        }
    }

    private static boolean isFloating(Value value) {
        return value instanceof DoubleValue || value instanceof FloatValue;
    }

    private static PrimitiveValue number(Value value) {
        if (value instanceof PrimitiveValue && !(value instanceof BooleanValue)) {
            return (PrimitiveValue) value;
        }
        if (value instanceof ObjectReference) {
            Field field = ((ObjectReference) value).referenceType().fieldByName("value");
            if (field != null && ((ObjectReference) value).getValue(field) instanceof PrimitiveValue) {
                return (PrimitiveValue) ((ObjectReference) value).getValue(field);
            }
        }
        throw new IllegalArgumentException("`" + Values.text(value) + "` is no number");
    }

    private static String plain(Value value) {
        return value instanceof StringReference ? ((StringReference) value).value() : Values.text(value);
    }

    private static boolean truth(Value value) {
        if (value instanceof BooleanValue) {
            return ((BooleanValue) value).value();
        }
        throw new IllegalArgumentException("`" + Values.text(value) + "` is neither true nor false");
    }

    private static boolean same(Value left, Value right) {
        if (left instanceof PrimitiveValue && right instanceof PrimitiveValue && !(left instanceof BooleanValue)) {
            return ((PrimitiveValue) left).doubleValue() == ((PrimitiveValue) right).doubleValue();
        }
        if (left instanceof StringReference && right instanceof StringReference) {
            return plain(left).equals(plain(right));
        }
        return left == null ? right == null : left.equals(right);
    }

    private static Value need(Value value) {
        if (value instanceof ObjectReference) {
            return value;
        }
        throw new IllegalArgumentException(value == null ? "that is null" : "`" + value + "` has no members");
    }

    private String next() {
        if (at >= tokens.size()) {
            throw new IllegalArgumentException("the expression ends too early");
        }
        return tokens.get(at++);
    }

    private boolean peek(String token) {
        return at < tokens.size() && tokens.get(at).equals(token);
    }

    private boolean take(String token) {
        boolean found = peek(token);
        at += found ? 1 : 0;
        return found;
    }

    private String taken(String[] signs) {
        for (String sign : signs) {
            if (take(sign)) {
                return sign;
            }
        }
        return null;
    }

    private void need(String token) {
        if (!take(token)) {
            throw new IllegalArgumentException("`" + token + "` is missing");
        }
    }

    private static List<String> tokens(String text) {
        java.util.regex.Matcher matcher = java.util.regex.Pattern.compile(
            "\\s*(\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])'|\\d+(?:\\.\\d+)?[lL]?|[\\w$]+|\\|\\||&&|[=!<>]=|.)",
            java.util.regex.Pattern.DOTALL).matcher(text.trim());
        List<String> found = new ArrayList<>();
        while (matcher.find()) {
            found.add(matcher.group(1));
        }
        return found;
    }
}
