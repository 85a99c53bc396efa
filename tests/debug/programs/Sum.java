import java.util.ArrayList;
import java.util.List;

public class Sum {
    private final List<String> names = new ArrayList<>();

    int add(int a, int b) {
        int c = a + b;
        names.add("n" + c);
        return c;
    }

    public static void main(String[] args) {
        Sum main = new Sum();
        int s = 0;
        for (int i = 0; i < 3; i++) {
            s += main.add(i, 2);
        }
        System.out.println("sum " + s);
        String none = null;
        if (args.length > 0) {
            none.length();
        }
        System.exit(3);
    }
}
