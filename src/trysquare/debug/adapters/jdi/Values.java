import com.sun.jdi.ArrayReference;
import com.sun.jdi.CharValue;
import com.sun.jdi.ClassNotLoadedException;
import com.sun.jdi.ClassType;
import com.sun.jdi.Field;
import com.sun.jdi.IncompatibleThreadStateException;
import com.sun.jdi.InvalidTypeException;
import com.sun.jdi.InvocationException;
import com.sun.jdi.Method;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.PrimitiveValue;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StringReference;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.Type;
import com.sun.jdi.Value;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Values of the program as texts and as parts, read without running any of its code.
 *
 * <p>Of the JDK's own collections, whose insides differ from version to version, those without a known shape are asked
 * for their elements in a thread that stands at an event; where there is none, their fields are shown.
 */
final class Values {
    private static final int PARTS = 8;
    private static final int MOST = 1000;
    private static final int DEPTH = 3;
    private static final int LONGEST = 400;
    private static final List<String> BOXES = List.of("java.lang.Integer", "java.lang.Long", "java.lang.Double",
        "java.lang.Float", "java.lang.Short", "java.lang.Byte", "java.lang.Boolean", "java.lang.Character");

    private Values() {
    }

    static String text(Value value) {
        return text(value, null);
    }

    static String text(Value value, ThreadReference thread) {
        return text(value, DEPTH, thread);
    }

    static String type(Value value) {
        return value == null ? "null" : shortName(value.type());
    }

    /** What a value is made of, by name: elements, entries or fields. */
    static Map<String, Value> parts(ObjectReference value, ThreadReference thread) {
        Map<String, Value> found = new LinkedHashMap<>();
        List<Value> elements = elements(value, thread);
        if (elements != null) {
            for (int index = 0; index < elements.size(); index++) {
                found.put("[" + index + "]", elements.get(index));
            }
            return found;
        }
        List<Value[]> entries = entries(value, thread);
        if (entries != null) {
            for (Value[] entry : entries) {
                found.put("[" + text(entry[0], 1, thread) + "]", entry[1]);
            }
            return found;
        }
        for (Field field : value.referenceType().allFields()) {
            if (!field.isStatic() && !field.isSynthetic()) {
                found.putIfAbsent(field.name(), value.getValue(field));
            }
        }
        return found;
    }

    private static String text(Value value, int depth, ThreadReference thread) {
        if (value == null) {
            return "null";
        }
        if (value instanceof StringReference) {
            String text = ((StringReference) value).value();
            return Json.write(text.length() > LONGEST ? text.substring(0, LONGEST) + "…" : text);
        }
        if (value instanceof CharValue) {
            return "'" + value + "'";
        }
        if (value instanceof PrimitiveValue) {
            return value.toString();
        }
        ObjectReference object = (ObjectReference) value;
        ReferenceType kind = object.referenceType();
        if (BOXES.contains(kind.name())) {
            return text(object.getValue(kind.fieldByName("value")), depth, thread);
        }
        if (is(kind, "java.lang.Enum")) {
            return shortName(kind) + "." + ((StringReference) field(object, "name")).value();
        }
        if (is(kind, "java.lang.Throwable")) {
            Value message = field(object, "detailMessage");
            return shortName(kind) + (message instanceof StringReference ? "(" + text(message, 0, thread) + ")" : "()");
        }
        String told = told(object, thread);
        if (told != null) {
            return told.length() > LONGEST ? told.substring(0, LONGEST) + "…" : told;
        }
        return depth == 0 ? shortName(kind) : whole(object, depth, thread);
    }

    private static boolean is(ReferenceType kind, String ancestor) {
        ClassType each = kind instanceof ClassType ? (ClassType) kind : null;
        while (each != null && !each.name().equals(ancestor)) {
            each = each.superclass();
        }
        return each != null;
    }

    private static String whole(ObjectReference object, int depth, ThreadReference thread) {
        List<Value> elements = elements(object, thread);
        List<String> shown = new ArrayList<>();
        if (elements != null) {
            for (Value each : elements.subList(0, Math.min(PARTS, elements.size()))) {
                shown.add(text(each, depth - 1, thread));
            }
            String more = elements.size() > PARTS ? ", … " + elements.size() + " items" : "";
            return "[" + String.join(", ", shown) + more + "]";
        }
        List<Value[]> entries = entries(object, thread);
        if (entries != null) {
            for (Value[] entry : entries.subList(0, Math.min(PARTS, entries.size()))) {
                shown.add(text(entry[0], depth - 1, thread) + ": " + text(entry[1], depth - 1, thread));
            }
            String more = entries.size() > PARTS ? ", … " + entries.size() + " items" : "";
            return "{" + String.join(", ", shown) + more + "}";
        }
        for (Map.Entry<String, Value> each : parts(object, thread).entrySet()) {
            if (shown.size() == PARTS) {
                shown.add("…");
                break;
            }
            shown.add(each.getKey() + "=" + text(each.getValue(), depth - 1, thread));
        }
        return shortName(object.referenceType()) + "{" + String.join(", ", shown) + "}";
    }

    /** The elements of an array or of a list that keeps them in one; null where it is something else. */
    private static List<Value> elements(ObjectReference value, ThreadReference thread) {
        if (value instanceof ArrayReference) {
            ArrayReference array = (ArrayReference) value;
            return array.length() == 0 ? List.of() : array.getValues(0, Math.min(array.length(), MOST));
        }
        String name = value.referenceType().name();
        if (name.equals("java.util.ArrayList") || name.equals("java.util.Vector")) {
            boolean list = name.equals("java.util.ArrayList");
            Value kept = field(value, "elementData");
            Value size = field(value, list ? "size" : "elementCount");
            int count = ((PrimitiveValue) size).intValue();
            return count == 0 ? List.of() : ((ArrayReference) kept).getValues(0, Math.min(count, MOST));
        }
        if (name.equals("java.util.Arrays$ArrayList")) {
            return elements((ObjectReference) field(value, "a"), thread);
        }
        if (name.startsWith("java.util.ImmutableCollections$List")) {
            return immutable(value);
        }
        if (inner(value) != null) {
            return elements(inner(value), thread);
        }
        List<Value> keys = keys(value, thread);
        return keys != null || !isJdk(value, "java.util.Collection") ? keys : array(value, thread);
    }

    /** Whether a value is of a collection of the JDK itself, and no view of another one that may be the user's. */
    private static boolean isJdk(ObjectReference value, String kind) {
        ReferenceType type = value.referenceType();
        boolean own = type.classLoader() == null && type.name().startsWith("java.util.");
        boolean view = type.name().contains("$") && !type.name().startsWith("java.util.ImmutableCollections$");
        return own && !view && type instanceof ClassType && has((ClassType) type, kind);
    }

    private static boolean has(ClassType type, String wanted) {
        return type.allInterfaces().stream().anyMatch(each -> each.name().equals(wanted));
    }

    /** What a view of `Collections` is a view of; null for other values. */
    private static ObjectReference inner(ObjectReference value) {
        ReferenceType type = value.referenceType();
        if (!type.name().startsWith("java.util.Collections$")) {
            return null;
        }
        Field kept = type.fieldByName("c") == null ? type.fieldByName("m") : type.fieldByName("c");
        return kept != null && value.getValue(kept) instanceof ObjectReference
            ? (ObjectReference) value.getValue(kept) : null;
    }

    /** The text of a value of the JDK that can be compared, such as a number or a date; null for others. */
    private static String told(ObjectReference value, ThreadReference thread) {
        ReferenceType type = value.referenceType();
        if (type.classLoader() != null || !(type instanceof ClassType) || !has((ClassType) type, "java.lang.Comparable")) {
            return null;
        }
        Value text = call(value, "toString", "()Ljava/lang/String;", thread);
        return text instanceof StringReference ? ((StringReference) text).value() : null;
    }

    /** The elements that a collection gives itself; null where it cannot be asked. */
    private static List<Value> array(ObjectReference value, ThreadReference thread) {
        Value found = call(value, "toArray", "()[Ljava/lang/Object;", thread);
        return found instanceof ArrayReference ? elements((ArrayReference) found, thread) : null;
    }

    private static Value call(Value value, String name, String signature, ThreadReference thread) {
        if (thread == null || !(value instanceof ObjectReference)) {
            return null;
        }
        ObjectReference object = (ObjectReference) value;
        try {
            Method method = ((ClassType) object.referenceType()).concreteMethodByName(name, signature);
            return method == null ? null
                : object.invokeMethod(thread, method, List.of(), ObjectReference.INVOKE_SINGLE_THREADED);
        } catch (InvalidTypeException | ClassNotLoadedException | IncompatibleThreadStateException
            | InvocationException other) {
            // Such as a thread that was paused: it stands at no event.
            return null;
        }
    }

    /** The keys and values of a hash map, from its table; null where it is something else. */
    private static List<Value[]> entries(ObjectReference value, ThreadReference thread) {
        String name = value.referenceType().name();
        if (!name.equals("java.util.HashMap") && !name.equals("java.util.LinkedHashMap")) {
            ObjectReference inner = inner(value);
            return inner != null ? entries(inner, thread) : isJdk(value, "java.util.Map") ? asked(value, thread) : null;
        }
        List<Value[]> found = new ArrayList<>();
        Value table = field(value, "table");
        if (table == null) {
            return found;
        }
        for (Value node : ((ArrayReference) table).getValues()) {
            while (node != null && found.size() < MOST) {
                ObjectReference entry = (ObjectReference) node;
                found.add(new Value[] {field(entry, "key"), field(entry, "value")});
                node = field(entry, "next");
            }
        }
        return found;
    }

    /** The entries that a map gives itself; null where it cannot be asked. */
    private static List<Value[]> asked(ObjectReference value, ThreadReference thread) {
        Value set = call(value, "entrySet", "()Ljava/util/Set;", thread);
        List<Value> entries = set == null ? null : array((ObjectReference) set, thread);
        if (entries == null) {
            return null;
        }
        List<Value[]> found = new ArrayList<>();
        for (Value each : entries) {
            Value key = call(each, "getKey", "()Ljava/lang/Object;", thread);
            found.add(new Value[] {key, call(each, "getValue", "()Ljava/lang/Object;", thread)});
        }
        return found;
    }

    /** The keys of a hash set; null where it is something else. */
    private static List<Value> keys(ObjectReference value, ThreadReference thread) {
        String name = value.referenceType().name();
        if (!name.equals("java.util.HashSet") && !name.equals("java.util.LinkedHashSet")) {
            return null;
        }
        List<Value> found = new ArrayList<>();
        for (Value[] entry : entries((ObjectReference) field(value, "map"), thread)) {
            found.add(entry[0]);
        }
        return found;
    }

    private static List<Value> immutable(ObjectReference value) {
        Field many = value.referenceType().fieldByName("elements");
        if (many != null) {
            return elements((ObjectReference) value.getValue(many), null);
        }
        List<Value> found = new ArrayList<>(List.of(field(value, "e0")));
        Value second = field(value, "e1");
        if (second != null && !second.type().name().equals("java.lang.Object")) {
            found.add(second);
        }
        return found;
    }

    private static Value field(ObjectReference value, String name) {
        return value.getValue(value.referenceType().fieldByName(name));
    }

    private static String shortName(Type type) {
        String name = type.name();
        return name.substring(name.lastIndexOf('.') + 1).replace('$', '.');
    }
}
