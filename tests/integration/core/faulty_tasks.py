"""Local storage on which tasks go wrong after they have written a data file.

A file in the directory `qbeast.tests.faults` of Hadoop's configuration switches a fault on. The
faults leave files there too, which show that they happened.
"""

RETRY = "retry"
"""The first attempt of each task fails. Leaves `retried.<stage>.<task>`."""
SPECULATE = "speculate"
"""The first attempt of task 0 does not end before another attempt has written the same rows.

Leaves `speculated`. Both attempts then succeed, as far as they know.
"""
LOSE_EXECUTOR = "lose executor"
"""The process of one task dies. Switches itself off."""

CLASS = "FaultyTasks"
SOURCE = """
import java.io.File;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;
import org.apache.spark.TaskContext;

public class FaultyTasks extends LocalFileSystem {
  public FSDataOutputStream create(
      Path path, FsPermission permission, boolean overwrite, int bufferSize, short replication,
      long blockSize, Progressable progress) throws IOException {
    FSDataOutputStream stream =
        super.create(path, permission, overwrite, bufferSize, replication, blockSize, progress);
    TaskContext task = TaskContext.get();
    if (task == null || !path.getName().endsWith(".parquet")) {
      return stream;
    }
    File faults = new File(getConf().get("qbeast.tests.faults"));
    return new FSDataOutputStream(new FaultyStream(stream, task, faults), null);
  }
}

class FaultyStream extends FilterOutputStream {
  private final TaskContext task;
  private final File faults;
  private boolean closed = false;

  FaultyStream(OutputStream stream, TaskContext task, File faults) {
    super(stream);
    this.task = task;
    this.faults = faults;
  }

  public void write(byte[] bytes, int offset, int length) throws IOException {
    out.write(bytes, offset, length);
  }

  public void close() throws IOException {
    super.close();
    if (closed) {
      return;
    }
    closed = true;
    boolean first = task.attemptNumber() == 0 && task.stageAttemptNumber() == 0;
    if (new File(faults, "lose executor").delete()) {
      Runtime.getRuntime().halt(1);
    }
    if (first && new File(faults, "retry").exists()) {
      new File(faults, "retried." + task.stageId() + "." + task.partitionId()).createNewFile();
      throw new IOException("lost after it was written");
    }
    if (task.partitionId() == 0 && new File(faults, "speculate").exists()) {
      File other = new File(faults, "speculated");
      if (!first) {
        other.createNewFile();
      }
      long end = System.currentTimeMillis() + 200000L;
      while (!other.exists()) {
        if (System.currentTimeMillis() > end) {
          throw new IOException("no other attempt was made");
        }
        try {
          Thread.sleep(20L);
        } catch (InterruptedException e) {
          throw new IOException("interrupted");
        }
      }
    }
  }
}
"""
