import com.sun.jdi.AbsentInformationException;
import com.sun.jdi.ReferenceType;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The user's own sources, and the classes that are made of them. */
final class Project {
    private static final Pattern PACKAGE = Pattern.compile("^\\s*package\\s+([\\w.]+)", Pattern.MULTILINE);
    private static final Set<String> BUILT = Set.of("target", "build", "out", "bin", "node_modules");
    private static final int MOST = 20_000;
    private final Map<String, List<String>> files = new HashMap<>();
    private final TreeSet<String> filters = new TreeSet<>();
    private int count;

    Project(Path root) throws IOException {
        Files.walkFileTree(root, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes about) {
                String name = folder.getFileName() == null ? "" : folder.getFileName().toString();
                boolean other = !folder.equals(root) && (name.startsWith(".") || BUILT.contains(name));
                return other ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes about) throws IOException {
                if (file.toString().endsWith(".java")) {
                    add(file);
                }
                return count < MOST ? FileVisitResult.CONTINUE : FileVisitResult.TERMINATE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException error) {
                return FileVisitResult.CONTINUE;
            }
        });
    }

    private void add(Path file) throws IOException {
        count++;
        Matcher found = PACKAGE.matcher(Files.readString(file, StandardCharsets.ISO_8859_1));
        String name = file.getFileName().toString();
        String base = found.find() ? found.group(1) : "";
        files.computeIfAbsent(base.replace('.', '/') + (base.isEmpty() ? "" : "/") + name, key -> new ArrayList<>())
            .add(file.toString());
        // Several classes may stand in one file: of a package all are watched, without one those of its name.
        filters.add(base.isEmpty() ? name.replaceAll("\\.java$", "") + "*" : base + ".*");
    }

    /** The patterns of the names of its classes, those left out that another one covers. */
    List<String> filters() {
        List<String> kept = new ArrayList<>();
        for (String each : filters) {
            String last = kept.isEmpty() ? "" : kept.get(kept.size() - 1);
            if (!last.endsWith(".*") || !each.startsWith(last.substring(0, last.length() - 1))) {
                kept.add(each);
            }
        }
        return kept;
    }

    /** The file that a class was made of; null where it is none of the project's. */
    String file(ReferenceType type) {
        try {
            List<String> found = files.get(type.sourcePaths("Java").get(0).replace('\\', '/'));
            return found == null ? null : found.get(0);
        } catch (AbsentInformationException unknown) {
            return null;
        }
    }

    /** The file of a frame of a stack as text. */
    String file(String type, String source) {
        int end = type.lastIndexOf('.');
        List<String> found = files.get((end < 0 ? "" : type.substring(0, end + 1).replace('.', '/')) + source);
        return found == null ? null : found.get(0);
    }
}
