import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON as maps, lists, texts, numbers, truth values and null: as much as a debug adapter needs. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object read(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.blanks();
        if (json.at != text.length()) {
            throw json.wrong("something after the end");
        }
        return value;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        return value instanceof Map ? (Map<String, Object>) value : new LinkedHashMap<>();
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        return value instanceof List ? (List<Object>) value : new ArrayList<>();
    }

    /** An object of names and values in turn; those without a value are left out. */
    static Map<String, Object> of(Object... pairs) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int index = 0; index < pairs.length; index += 2) {
            if (pairs[index + 1] != null) {
                made.put((String) pairs[index], pairs[index + 1]);
            }
        }
        return made;
    }

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map) {
            String between = "{";
            for (Map.Entry<String, Object> entry : object(value).entrySet()) {
                out.append(between);
                quote(entry.getKey(), out);
                out.append(':');
                write(entry.getValue(), out);
                between = ",";
            }
            out.append(between.equals("{") ? "{}" : "}");
        } else if (value instanceof List) {
            String between = "[";
            for (Object part : list(value)) {
                out.append(between);
                write(part, out);
                between = ",";
            }
            out.append(between.equals("[") ? "[]" : "]");
        } else if (value instanceof String) {
            quote((String) value, out);
        } else {
            out.append(value);
        }
    }

    private static void quote(String value, StringBuilder out) {
        out.append('"');
        for (int index = 0; index < value.length(); index++) {
            char character = value.charAt(index);
            if (character == '"' || character == '\\') {
                out.append('\\').append(character);
            } else if (character < ' ' || Character.isSurrogate(character)) {
                out.append(String.format("\\u%04x", (int) character));
            } else {
                out.append(character);
            }
        }
        out.append('"');
    }

    private Object value() {
        blanks();
        if (at >= text.length()) {
            throw wrong("the end");
        }
        char first = text.charAt(at);
        switch (first) {
            case '{':
                return members();
            case '[':
                return parts();
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> members() {
        Map<String, Object> found = new LinkedHashMap<>();
        at++;
        blanks();
        if (take('}')) {
            return found;
        }
        do {
            blanks();
            String name = string();
            blanks();
            need(':');
            found.put(name, value());
            blanks();
        } while (take(','));
        need('}');
        return found;
    }

    private List<Object> parts() {
        List<Object> found = new ArrayList<>();
        at++;
        blanks();
        if (take(']')) {
            return found;
        }
        do {
            found.add(value());
            blanks();
        } while (take(','));
        need(']');
        return found;
    }

    private String string() {
        need('"');
        StringBuilder found = new StringBuilder();
        while (at < text.length() && text.charAt(at) != '"') {
            char character = text.charAt(at++);
            found.append(character == '\\' ? escaped() : character);
        }
        need('"');
        return found.toString();
    }

    private char escaped() {
        char character = text.charAt(at++);
        switch (character) {
            case 'n':
                return '\n';
            case 't':
                return '\t';
            case 'r':
                return '\r';
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'u':
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 4, at), 16);
            default:
                return character;
        }
    }

    private Object number() {
        int begin = at;
        while (at < text.length() && "+-0123456789.eE".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String digits = text.substring(begin, at);
        if (digits.isEmpty()) {
            throw wrong("`" + text.charAt(at) + "`");
        }
        boolean whole = digits.chars().allMatch(each -> each == '-' || Character.isDigit(each));
        return whole ? (Object) Long.valueOf(digits) : (Object) Double.valueOf(digits);
    }

    private Object word(String name, Object value) {
        if (!text.startsWith(name, at)) {
            throw wrong("an unknown word");
        }
        at += name.length();
        return value;
    }

    private void blanks() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
    }

    private boolean take(char wanted) {
        if (at < text.length() && text.charAt(at) == wanted) {
            at++;
            return true;
        }
        return false;
    }

    private void need(char wanted) {
        if (!take(wanted)) {
            throw wrong("no `" + wanted + "`");
        }
    }

    private IllegalArgumentException wrong(String what) {
        return new IllegalArgumentException("no JSON: " + what + " at " + at);
    }
}
