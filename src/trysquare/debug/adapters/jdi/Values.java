import com.sun.jdi.ArrayReference;
import com.sun.jdi.CharValue;
import com.sun.jdi.Field;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.PrimitiveValue;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StringReference;
import com.sun.jdi.Type;
import com.sun.jdi.Value;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Values of the program as texts and as parts, read without running any of its code. */
final class Values {
    private static final int PARTS = 8;
    private static final List<String> BOXES = List.of("java.lang.Integer", "java.lang.Long", "java.lang.Double",
        "java.lang.Float", "java.lang.Short", "java.lang.Byte", "java.lang.Boolean", "java.lang.Character");

    private Values() {
    }

    static String text(Value value) {
        return text(value, 2);
    }

    static String type(Value value) {
        return value == null ? "null" : shortName(value.type());
    }

    /** What a value is made of, by name: elements, entries or fields. */
    static Map<String, Value> parts(ObjectReference value) {
        Map<String, Value> found = new LinkedHashMap<>();
        List<Value> elements = elements(value);
        if (elements != null) {
            for (int index = 0; index < elements.size(); index++) {
                found.put("[" + index + "]", elements.get(index));
            }
            return found;
        }
        List<Value[]> entries = entries(value);
        if (entries != null) {
            for (Value[] entry : entries) {
                found.put("[" + text(entry[0], 1) + "]", entry[1]);
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

    private static String text(Value value, int depth) {
        if (value == null) {
            return "null";
        }
        if (value instanceof StringReference) {
            String text = ((StringReference) value).value();
            return Json.write(text.length() > 400 ? text.substring(0, 400) + "…" : text);
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
            return text(object.getValue(kind.fieldByName("value")), depth);
        }
        return depth == 0 ? shortName(kind) : whole(object, depth);
    }

    private static String whole(ObjectReference object, int depth) {
        List<Value> elements = elements(object);
        List<String> shown = new ArrayList<>();
        if (elements != null) {
            for (Value each : elements.subList(0, Math.min(PARTS, elements.size()))) {
                shown.add(text(each, depth - 1));
            }
            String more = elements.size() > PARTS ? ", … " + elements.size() + " items" : "";
            return "[" + String.join(", ", shown) + more + "]";
        }
        List<Value[]> entries = entries(object);
        if (entries != null) {
            for (Value[] entry : entries.subList(0, Math.min(PARTS, entries.size()))) {
                shown.add(text(entry[0], depth - 1) + ": " + text(entry[1], depth - 1));
            }
            String more = entries.size() > PARTS ? ", … " + entries.size() + " items" : "";
            return "{" + String.join(", ", shown) + more + "}";
        }
        for (Map.Entry<String, Value> each : parts(object).entrySet()) {
            if (shown.size() == PARTS) {
                shown.add("…");
                break;
            }
            shown.add(each.getKey() + "=" + text(each.getValue(), depth - 1));
        }
        return shortName(object.referenceType()) + "{" + String.join(", ", shown) + "}";
    }

    /** The elements of an array or of a list that keeps them in one; null where it is something else. */
    private static List<Value> elements(ObjectReference value) {
        if (value instanceof ArrayReference) {
            ArrayReference array = (ArrayReference) value;
            return array.length() == 0 ? List.of() : array.getValues(0, Math.min(array.length(), 1000));
        }
        String name = value.referenceType().name();
        if (name.equals("java.util.ArrayList") || name.equals("java.util.Vector")) {
            boolean list = name.equals("java.util.ArrayList");
            Value kept = field(value, "elementData");
            Value size = field(value, list ? "size" : "elementCount");
            int count = ((PrimitiveValue) size).intValue();
            return count == 0 ? List.of() : ((ArrayReference) kept).getValues(0, Math.min(count, 1000));
        }
        if (name.equals("java.util.Arrays$ArrayList")) {
            return elements((ObjectReference) field(value, "a"));
        }
        if (name.startsWith("java.util.ImmutableCollections$List")) {
            return immutable(value);
        }
        return keys(value);
    }

    /** The keys and values of a hash map, from its table; null where it is something else. */
    private static List<Value[]> entries(ObjectReference value) {
        String name = value.referenceType().name();
        if (!name.equals("java.util.HashMap") && !name.equals("java.util.LinkedHashMap")) {
            return null;
        }
        List<Value[]> found = new ArrayList<>();
        Value table = field(value, "table");
        if (table == null) {
            return found;
        }
        for (Value node : ((ArrayReference) table).getValues()) {
            while (node != null && found.size() < 1000) {
                ObjectReference entry = (ObjectReference) node;
                found.add(new Value[] {field(entry, "key"), field(entry, "value")});
                node = field(entry, "next");
            }
        }
        return found;
    }

    /** The keys of a hash set; null where it is something else. */
    private static List<Value> keys(ObjectReference value) {
        String name = value.referenceType().name();
        if (!name.equals("java.util.HashSet") && !name.equals("java.util.LinkedHashSet")) {
            return null;
        }
        List<Value> found = new ArrayList<>();
        for (Value[] entry : entries((ObjectReference) field(value, "map"))) {
            found.add(entry[0]);
        }
        return found;
    }

    private static List<Value> immutable(ObjectReference value) {
        Field many = value.referenceType().fieldByName("elements");
        if (many != null) {
            return elements((ObjectReference) value.getValue(many));
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
