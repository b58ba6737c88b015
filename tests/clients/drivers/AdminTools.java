import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.internals.Exit;

/** Runs Apache's own command-line tools one after the other in one process: one JSON line each. */
public class AdminTools {
    /** Ends a tool where it would have ended its process; some catch this, and go on too far. */
    static class Exited extends RuntimeException {
        final int code;
        final String out;
        final String error;

        Exited(int code, String out, String error) {
            this.code = code;
            this.out = out;
            this.error = error;
        }
    }

    static Exited exited;

    static String text(ByteArrayOutputStream bytes) {
        return bytes.toString(StandardCharsets.UTF_8);
    }

    /** Apache Kafka answers an alteration before its broker has taken it in. */
    static final long TAKEN_IN_MILLIS = 500;

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        PrintStream own = System.out;
        boolean changed = false;
        for (JsonNode step : json.readTree(new File(arguments[0]))) {
            JsonNode words = step.get(1);
            String[] options = new String[words.size() - 1];
            for (int index = 0; index < options.length; index++) {
                options[index] = words.get(index + 1).asText();
            }
            boolean changes = !Arrays.asList(options).contains("--describe");
            if (changed && !changes) {
                Thread.sleep(TAKEN_IN_MILLIS);
            }
            changed = changes;
            var out = new ByteArrayOutputStream();
            var error = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(step.get(0).asText().getBytes(StandardCharsets.UTF_8)));
            System.setOut(new PrintStream(out, true));
            System.setErr(new PrintStream(error, true));
            int status = 0;
            exited = null;
            Exit.setExitProcedure((code, message) -> {
                if (exited == null) {
                    exited = new Exited(code, text(out), text(error));
                }
                throw exited;
            });
            try {
                Class.forName(words.get(0).asText()).getMethod("main", String[].class)
                        .invoke(null, (Object) options);
            } catch (java.lang.reflect.InvocationTargetException failure) {
                if (exited == null) {
                    status = 1;
                    failure.getCause().printStackTrace(System.err);
                }
            }
            System.setOut(own);
            ObjectNode answer = json.createObjectNode();
            answer.put("code", exited == null ? status : exited.code);
            answer.put("out", exited == null ? text(out) : exited.out);
            answer.put("error", exited == null ? text(error) : exited.error);
            // Some tools print on after their end, when the process ends.
            own.println("ANSWER " + json.writeValueAsString(answer));
            own.flush();
        }
        System.exit(0);
    }
}
