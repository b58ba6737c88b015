import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Apache's Java clients under test: does a list of tasks, answers one JSON line each. */
public class JavaClient {
    static final ObjectMapper JSON = new ObjectMapper();
    static final int LIMIT = 16 << 20;
    /** Closing a consumer waits for its parked fetches. */
    static final int FETCH_WAIT_MS = 50;

    static byte[] decode(JsonNode node) {
        return node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    static String encode(byte[] data) {
        return data == null ? null : Base64.getEncoder().encodeToString(data);
    }

    static ObjectNode produce(String bootstrap, JsonNode task) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("compression.type", task.get("codec").asText());
        settings.put("enable.idempotence", task.get("idempotence").asText());
        settings.put("acks", "all");
        settings.put("linger.ms", "20");
        settings.put("batch.size", "65536");
        settings.put("max.request.size", String.valueOf(LIMIT));
        settings.put("buffer.memory", String.valueOf(8L * LIMIT));
        settings.put("delivery.timeout.ms", "60000");
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        var serializer = new ByteArraySerializer();
        try (var producer = new KafkaProducer<>(settings, serializer, serializer);
                BufferedReader lines = Files.newBufferedReader(Path.of(task.get("records").asText()))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                JsonNode one = JSON.readTree(line);
                List<Header> headers = new ArrayList<>();
                for (JsonNode header : one.get("h")) {
                    headers.add(new RecordHeader(header.get(0).asText(), decode(header.get(1))));
                }
                futures.add(producer.send(new ProducerRecord<>(task.get("topic").asText(),
                    one.get("p").asInt(), one.get("t").asLong(), decode(one.get("k")),
                    decode(one.get("v")), headers)));
            }
            producer.flush();
        }
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode acked = answer.putArray("acked");
        for (Future<RecordMetadata> future : futures) {
            RecordMetadata meta = future.get();
            acked.addArray().add(meta.partition()).add(meta.offset());
        }
        return answer;
    }

    static ObjectNode consume(String bootstrap, JsonNode task) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", "false");
        settings.put("fetch.max.wait.ms", String.valueOf(FETCH_WAIT_MS));
        settings.put("max.partition.fetch.bytes", String.valueOf(LIMIT));
        settings.put("fetch.max.bytes", String.valueOf(4 * LIMIT));
        List<TopicPartition> partitions = new ArrayList<>();
        for (int index = 0; index < task.get("partitions").asInt(); index++) {
            partitions.add(new TopicPartition(task.get("topic").asText(), index));
        }
        var deserializer = new ByteArrayDeserializer();
        int count = 0;
        try (var consumer = new KafkaConsumer<>(settings, deserializer, deserializer);
                BufferedWriter out = Files.newBufferedWriter(Path.of(task.get("output").asText()))) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            for (int idle = 0; idle < 60 && partitions.stream()
                    .anyMatch(one -> consumer.position(one) < ends.get(one)); idle++) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    idle = 0;
                    count++;
                    out.write(JSON.writeValueAsString(describe(record)));
                    out.write('\n');
                }
            }
        }
        return JSON.createObjectNode().put("count", count);
    }

    /** A member of a group: reads until it has enough or is told to stop, commits and leaves. */
    static ObjectNode subscribe(String bootstrap, JsonNode task) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", task.get("group").asText());
        settings.put("client.id", "java");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("heartbeat.interval.ms", "200");
        settings.put("fetch.max.wait.ms", String.valueOf(FETCH_WAIT_MS));
        long wanted = task.has("count") ? task.get("count").asLong() : Long.MAX_VALUE;
        // Not one record more than it wants: the next one has to find the rest.
        settings.put("max.poll.records", wanted < Long.MAX_VALUE ? "1" : "10");
        Path stop = Path.of(task.get("stop").asText());
        var deserializer = new ByteArrayDeserializer();
        long count = 0;
        java.util.Set<TopicPartition> assigned = java.util.Set.of();
        try (var consumer = new KafkaConsumer<>(settings, deserializer, deserializer);
                BufferedWriter out = Files.newBufferedWriter(Path.of(task.get("output").asText()))) {
            consumer.subscribe(List.of(task.get("topic").asText()));
            for (int idle = 0; count < wanted && !Files.exists(stop); idle++) {
                if (wanted < Long.MAX_VALUE && idle > 1_200) {
                    throw new IllegalStateException(count + " of " + wanted + " records came");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(50))) {
                    idle = 0;
                    count++;
                    ObjectNode one = JSON.createObjectNode();
                    one.put("p", record.partition()).put("o", record.offset());
                    out.write(JSON.writeValueAsString(one) + "\n");
                }
                if (!consumer.assignment().equals(assigned)) {
                    assigned = new java.util.HashSet<>(consumer.assignment());
                    ObjectNode one = JSON.createObjectNode();
                    ArrayNode partitions = one.putArray("assigned");
                    assigned.forEach(partition -> partitions.add(partition.partition()));
                    out.write(JSON.writeValueAsString(one) + "\n");
                }
                out.flush();
            }
            consumer.commitSync();
        }
        return JSON.createObjectNode().put("count", count);
    }

    static ObjectNode describe(ConsumerRecord<byte[], byte[]> record) throws Exception {
        byte[] value = record.value();
        ObjectNode one = JSON.createObjectNode();
        one.put("p", record.partition()).put("o", record.offset()).put("t", record.timestamp());
        one.put("k", encode(record.key()));
        one.put("v", value == null ? null
            : HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(value)));
        one.put("n", value == null ? 0 : value.length);
        ArrayNode headers = one.putArray("h");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(encode(header.value()));
        }
        return one;
    }

    public static void main(String[] arguments) throws Exception {
        for (JsonNode task : JSON.readTree(new File(arguments[1]))) {
            ObjectNode answer;
            try {
                answer = switch (task.get("do").asText()) {
                    case "produce" -> produce(arguments[0], task);
                    case "subscribe" -> subscribe(arguments[0], task);
                    default -> consume(arguments[0], task);
                };
            } catch (Exception error) {
                answer = JSON.createObjectNode().put("error", error.toString());
            }
            System.out.println(answer);
        }
    }
}
