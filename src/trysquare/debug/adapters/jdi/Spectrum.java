import com.sun.jdi.Bootstrap;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.connect.ListeningConnector;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * Runs a command that runs tests, and writes of each test whether it failed, the values where it did, and its lines.
 *
 * <p>Every virtual machine that the command starts connects to this program and runs under the debug interface, so that
 * nothing is added to the project: its build tool, its options and its class path stay as they are.
 */
public final class Spectrum {
    private static final String AGENT = "-agentlib:jdwp=transport=dt_socket,server=n,suspend=y,address=127.0.0.1:";
    private static final long ENDING = 5000;
    private final Project project;
    private final BufferedWriter report;
    private final double seconds;
    private final List<TestMachine> machines = new ArrayList<>();

    private Spectrum(Path root, Path report, double seconds) throws IOException {
        this.project = new Project(root);
        this.report = Files.newBufferedWriter(report, StandardCharsets.UTF_8);
        this.seconds = seconds;
    }

    /** The workspace, the file to write, the seconds in which lines are noted, and the command. */
    public static void main(String[] words) throws Exception {
        Spectrum spectrum = new Spectrum(Path.of(words[0]), Path.of(words[1]), Double.parseDouble(words[2]));
        System.exit(spectrum.run(Arrays.asList(words).subList(3, words.length)));
    }

    private int run(List<String> command) throws Exception {
        ListeningConnector connector = Bootstrap.virtualMachineManager().listeningConnectors().stream()
            .filter(each -> each.name().equals("com.sun.jdi.SocketListen")).findFirst().orElseThrow();
        Map<String, Connector.Argument> arguments = connector.defaultArguments();
        arguments.get("port").setValue("0");
        arguments.get("localAddress").setValue("127.0.0.1");
        String address = connector.startListening(arguments);
        accept(connector, arguments);
        ProcessBuilder builder = new ProcessBuilder(command).inheritIO();
        String agent = AGENT + address.substring(address.lastIndexOf(':') + 1);
        builder.environment().merge("JAVA_TOOL_OPTIONS", agent, (own, ours) -> own + " " + ours);
        Process process = builder.start();
        int code = process.waitFor();
        List<TestMachine> seen;
        synchronized (machines) {
            seen = List.copyOf(machines);
        }
        for (TestMachine machine : seen) {
            machine.join(ENDING);
        }
        synchronized (report) {
            report.close();
        }
        return code;
    }

    private void accept(ListeningConnector connector, Map<String, Connector.Argument> arguments) {
        Thread thread = new Thread(() -> {
            while (true) {
                try {
                    VirtualMachine vm = connector.accept(arguments);
                    TestMachine machine = new TestMachine(vm, project, this::write, seconds);
                    synchronized (machines) {
                        machines.add(machine);
                    }
                    machine.start();
                } catch (Exception error) {
                    // A machine that ends while it connects; the others still do.
                    System.err.println("trysquare: " + error);
                }
            }
        }, "accept");
        thread.setDaemon(true);
        thread.start();
    }

    private void write(Map<String, Object> found) {
        synchronized (report) {
            try {
                report.write(Json.write(found));
                report.newLine();
                report.flush();
            } catch (IOException closed) {
                // The command has ended: what comes later is not waited for.
                return;
            }
        }
    }
}
