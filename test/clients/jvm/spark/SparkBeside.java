import java.io.File;
import org.apache.spark.sql.*;
import org.apache.spark.sql.streaming.*;

/**
 * A batch beside a stream: while a stream follows TOPIC, batches read all of it, again and again, until the file
 * STOP exists; the file READY is made when the first one has ended. Each batch must have what the one before it had,
 * and more, each record once; the stream must have read by its end all that the last batch has. Values are numbers,
 * each of which was written once.
 */
public class SparkBeside {
    static final String BOOTSTRAP = System.getenv("BOOTSTRAP"), TOPIC = System.getenv("TOPIC");

    static void check(boolean ok, String what) {
        if (!ok) throw new IllegalStateException(what);
    }

    public static void main(String[] args) throws Exception {
        SparkSession s = SparkSession.builder().master("local[2]").appName("beside").config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1").config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate();
        StreamingQuery stream = s.readStream().format("kafka").option("kafka.bootstrap.servers", BOOTSTRAP).option("subscribe", TOPIC)
            .option("startingOffsets", "earliest").load().selectExpr("cast(cast(value as string) as bigint) v")
            .writeStream().format("memory").queryName("streamed").trigger(Trigger.ProcessingTime(200)).start();
        long last = 0, batches = 0, grown = 0;
        boolean ending;
        do {
            ending = new File(System.getenv("STOP")).exists();
            Row r = s.read().format("kafka").option("kafka.bootstrap.servers", BOOTSTRAP).option("subscribe", TOPIC)
                .option("startingOffsets", "earliest").load().selectExpr("cast(cast(value as string) as bigint) v")
                .selectExpr("count(*)", "count(distinct v)").first();
            check(r.getLong(0) == r.getLong(1), r.getLong(0) + " records with " + r.getLong(1) + " values");
            check(r.getLong(0) >= last, "a batch has " + r.getLong(0) + " records, the one before had " + last);
            if (r.getLong(0) > last) grown++;
            last = r.getLong(0);
            if (++batches == 1) check(new File(System.getenv("READY")).createNewFile(), "somebody else is ready");
        } while (!ending);
        check(grown >= 3, "only " + grown + " batches had more than the one before");
        stream.processAllAvailable();
        Row r = s.sql("select count(*), count(distinct v), max(v) from streamed").first();
        check(r.getLong(0) == last && r.getLong(1) == last && r.getLong(2) == last,
            "the stream has " + r.getLong(0) + " records with " + r.getLong(1) + " values up to " + r.getLong(2) + ", the last batch has " + last);
        System.out.printf("ok: %d batches beside a stream, of which %d had more than the one before; %d records%n", batches, grown, last);
        System.exit(0);
    }
}
