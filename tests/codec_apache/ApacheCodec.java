import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.internal.MemoryRecords;

/**
 * Reads messages with Apache Kafka's own classes. Each line in is "class version hex"; each line
 * out is the hex of what Kafka writes for the message it read, and every field as "path=value",
 * sorted, with tabs between; or "error" and why.
 */
public final class ApacheCodec {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            try {
                out.println(answer(words[0], Short.parseShort(words[1]), words[2]));
            } catch (Exception error) {
                out.println("error\t" + error);
            }
        }
        out.flush();
    }

    private static String answer(String name, short version, String hex) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        Message message = (Message) Class.forName(name).getDeclaredConstructor().newInstance();
        message.read(new ByteBufferAccessor(bytes), version);
        if (bytes.hasRemaining()) {
            return "error\t" + bytes.remaining() + " bytes left";
        }
        List<String> leaves = new ArrayList<>();
        flatten("", message, leaves);
        Collections.sort(leaves);
        ByteBuffer again = MessageUtil.toByteBufferAccessor(message, version).buffer();
        return HexFormat.of().formatHex(array(again)) + "\t" + String.join("\t", leaves);
    }

    private static byte[] array(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    private static void flatten(String path, Object value, List<String> leaves) throws Exception {
        if (value == null) {
            leaves.add(path + "=None");
        } else if (value instanceof Message) {
            for (Field field : value.getClass().getDeclaredFields()) {
                String name = field.getName();
                boolean linked = name.equals("next") || name.equals("prev");
                if (!Modifier.isStatic(field.getModifiers()) && !linked && !name.startsWith("_")) {
                    field.setAccessible(true);
                    flatten(path + "." + snake(name), field.get(value), leaves);
                }
            }
        } else if (value instanceof Collection<?> items) {
            leaves.add(path + ".len=" + items.size());
            int place = 0;
            for (Object item : items) {
                flatten(path + "." + place++, item, leaves);
            }
        } else if (value instanceof String text) {
            leaves.add(path + "=\"" + text + "\"");
        } else if (value instanceof MemoryRecords records) {
            leaves.add(path + "=\"" + printed(array(records.buffer())) + "\"");
        } else if (value instanceof byte[] bytes) {
            leaves.add(path + "=\"" + printed(bytes) + "\"");
        } else if (value instanceof ByteBuffer buffer) {
            leaves.add(path + "=\"" + printed(array(buffer)) + "\"");
        } else if (value instanceof Uuid id) {
            long high = id.getMostSignificantBits();
            leaves.add(path + "=" + new java.util.UUID(high, id.getLeastSignificantBits()));
        } else {
            leaves.add(path + "=" + value);
        }
    }

    private static String snake(String name) {
        return name.replace("kRaft", "kraft")
            .replaceAll("([a-z0-9])([A-Z])", "$1_$2")
            .toLowerCase(java.util.Locale.ROOT);
    }

    /** As Rust's `bytes` prints them. */
    private static String printed(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte one : bytes) {
            switch (one) {
                case 0 -> text.append("\\0");
                case '\n' -> text.append("\\n");
                case '\r' -> text.append("\\r");
                case '\t' -> text.append("\\t");
                case '\\', '"' -> text.append('\\').append((char) one);
                default -> text.append(
                    one >= 0x20 && one < 0x7f
                        ? Character.toString((char) one)
                        : String.format("\\x%02x", one & 0xff));
            }
        }
        return text.toString();
    }
}
