import java.nio.file.Files;
import java.nio.file.Path;

/** Where the sources of classes lie: in the folders that the bridge was told of. */
final class Sources {
    private Sources() {
    }

    /** The file of a source, or its bare path where none of the folders has it. */
    static String find(String path) {
        for (String root : System.getProperty("trysquare.sources", "").split(java.io.File.pathSeparator)) {
            Path file = Path.of(root, path);
            if (!root.isEmpty() && Files.exists(file)) {
                return file.toString();
            }
        }
        return path;
    }
}
