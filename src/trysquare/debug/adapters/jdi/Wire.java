import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Messages of the Debug Adapter Protocol over two streams. Writing is safe from several threads. */
final class Wire {
    private final InputStream in;
    private final OutputStream out;
    private int number;

    Wire(InputStream in, OutputStream out) {
        this.in = in;
        this.out = out;
    }

    /** The next message, or null at the end. */
    Map<String, Object> read() throws IOException {
        int length = -1;
        for (String line = line(); line != null; line = line()) {
            if (line.isEmpty() && length >= 0) {
                return Json.object(Json.read(new String(in.readNBytes(length), StandardCharsets.UTF_8)));
            }
            if (line.toLowerCase().startsWith("content-length:")) {
                length = Integer.parseInt(line.substring(15).trim());
            }
        }
        return null;
    }

    void event(String name, Map<String, Object> body) {
        send(Json.of("type", "event", "event", name, "body", body));
    }

    void answer(Map<String, Object> request, Map<String, Object> body) {
        send(Json.of("type", "response", "request_seq", request.get("seq"), "command", request.get("command"),
            "success", true, "body", body));
    }

    void refuse(Map<String, Object> request, String reason) {
        send(Json.of("type", "response", "request_seq", request.get("seq"), "command", request.get("command"),
            "success", false, "message", reason));
    }

    private synchronized void send(Map<String, Object> message) {
        message.put("seq", ++number);
        byte[] body = Json.write(message).getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream whole = new ByteArrayOutputStream(body.length + 32);
        whole.writeBytes(("Content-Length: " + body.length + "\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
        whole.writeBytes(body);
        try {
            out.write(whole.toByteArray());
            out.flush();
        } catch (IOException gone) {
            System.exit(1);
        }
    }

    private String line() throws IOException {
        ByteArrayOutputStream found = new ByteArrayOutputStream();
        for (int each = in.read(); each >= 0; each = in.read()) {
            if (each == '\n') {
                return found.toString(StandardCharsets.US_ASCII).trim();
            }
            found.write(each);
        }
        return null;
    }
}
