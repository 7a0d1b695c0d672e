import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.net.InetSocketAddress;
import java.net.HttpURLConnection;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Waits until an engine answers a client: {@code kafka HOST:PORT BROKERS SECONDS} (the cluster has this many brokers and a
 * controller), {@code cql HOST:PORT SECONDS} (a query of the CQL protocol is answered), {@code http URL SECONDS} (with status 200). The exit code is 0, or 1 after a time-out.
 */
class Ready {
    public static void main(String[] args) throws Exception {
        String[] address = args[1].split(":");
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Long.parseLong(args[args.length - 1]));
        do {
            try {
                boolean ready = switch (args[0]) {
                    case "kafka" -> kafka(args[1], Integer.parseInt(args[2]));
                    case "http" -> http(args[1]);
                    default -> cql(address[0], Integer.parseInt(address[1]));
                };
                if (ready) {
                    return;
                }
            } catch (Exception notYet) {
                // The loop below tries again.
            }
            Thread.sleep(100);
        } while (System.nanoTime() < end);
        System.exit(1);
    }

    /** Uses reflection, so that this file also compiles if only the packages of the CQL node are present. */
    private static boolean kafka(String address, int brokers) throws Exception {
        Map<String, Object> config = Map.of(
            "bootstrap.servers", address, "request.timeout.ms", 1000, "default.api.timeout.ms", 2000, "reconnect.backoff.max.ms", 200);
        Class<?> type = Class.forName("org.apache.kafka.clients.admin.Admin");
        try (AutoCloseable admin = (AutoCloseable) type.getMethod("create", Map.class).invoke(null, config)) {
            Object cluster = type.getMethod("describeCluster").invoke(admin);
            Object nodes = get(cluster.getClass().getMethod("nodes").invoke(cluster));
            Object controller = get(cluster.getClass().getMethod("controller").invoke(cluster));
            return controller != null && ((java.util.Collection<?>) nodes).size() >= brokers;
        }
    }

    private static Object get(Object future) throws Exception {
        return future.getClass().getMethod("get", long.class, TimeUnit.class).invoke(future, 2L, TimeUnit.SECONDS);
    }

    private static boolean http(String url) throws Exception {
        HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
        connection.setConnectTimeout(1000);
        connection.setReadTimeout(2000);
        return connection.getResponseCode() == 200;
    }

    private static boolean cql(String host, int port) throws Exception {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(host, port), 1000);
            socket.setSoTimeout(2000);
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] name = "CQL_VERSION".getBytes(StandardCharsets.UTF_8);
            byte[] version = "3.0.0".getBytes(StandardCharsets.UTF_8);
            frame(out, 0x01, 2 + 2 + name.length + 2 + version.length);
            out.writeShort(1);
            out.writeShort(name.length);
            out.write(name);
            out.writeShort(version.length);
            out.write(version);
            out.flush();
            int started = answer(in);
            if (started == 0x03) {
                // A node that requires authentication: the default user of a new node.
                byte[] token = "\0cassandra\0cassandra".getBytes(StandardCharsets.UTF_8);
                frame(out, 0x0F, 4 + token.length);
                out.writeInt(token.length);
                out.write(token);
                out.flush();
                started = answer(in) == 0x10 ? 0x02 : 0;
            }
            if (started != 0x02) {
                return false;
            }
            byte[] query = "SELECT release_version FROM system.local".getBytes(StandardCharsets.UTF_8);
            frame(out, 0x07, 4 + query.length + 3);
            out.writeInt(query.length);
            out.write(query);
            out.writeShort(1);
            out.writeByte(0);
            out.flush();
            return answer(in) == 0x08;
        }
    }

    private static void frame(DataOutputStream out, int opcode, int length) throws Exception {
        out.writeByte(4);
        out.writeByte(0);
        out.writeShort(0);
        out.writeByte(opcode);
        out.writeInt(length);
    }

    private static int answer(DataInputStream in) throws Exception {
        in.skipNBytes(4);
        int opcode = in.readUnsignedByte();
        in.skipNBytes(in.readInt());
        return opcode;
    }
}
