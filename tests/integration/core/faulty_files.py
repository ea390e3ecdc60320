"""A disk on which writing data files goes wrong in a way that a test chooses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from qbeast_core import changed_settings
from tests.support.java_classes import load_java_class

FULL = "full"
"""The disk has room for the beginning of each file."""
DENIED = "denied"
"""No file can be made, as in a read-only directory."""
KILLS = "kills"
"""The group of processes with this number gets SIGKILL in the middle of a file: `kills 123`."""

_SOURCE = """
import java.io.FileNotFoundException;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

public class FaultyFiles extends LocalFileSystem {
  public FaultyFiles() {
    super(new FaultyDisk());
  }

  public static class FaultyDisk extends RawLocalFileSystem {
    public FSDataOutputStream create(
        Path path, FsPermission permission, boolean overwrite, int buffer, short replication,
        long block, Progressable progress) throws IOException {
      String fault = System.getProperty("qbeast.tests.files");
      boolean isFaulty = fault != null && path.getName().endsWith(".parquet");
      if (isFaulty && fault.equals("denied")) {
        throw new FileNotFoundException(path.toUri().getPath() + " (Permission denied)");
      }
      FSDataOutputStream out =
          super.create(path, permission, overwrite, buffer, replication, block, progress);
      return isFaulty ? new FSDataOutputStream(new FaultyStream(out, fault), null) : out;
    }
  }

  public static class FaultyStream extends FilterOutputStream {
    private final String fault;
    private int left = 100;

    public FaultyStream(OutputStream out, String fault) {
      super(out);
      this.fault = fault;
    }

    public void write(int one) throws IOException {
      write(new byte[] {(byte) one}, 0, 1);
    }

    public void write(byte[] bytes, int first, int count) throws IOException {
      int now = Math.min(left, count);
      out.write(bytes, first, now);
      left -= now;
      if (now < count) {
        out.flush();
        if (fault.startsWith("kills ")) {
          String group = "-" + fault.substring(6);
          try {
            new ProcessBuilder(new String[] {"kill", "-9", "--", group}).start().waitFor();
          } catch (InterruptedException interrupted) {
            throw new IOException(interrupted);
          }
        }
        throw new IOException("No space left on device");
      }
    }
  }
}
"""


@contextmanager
def data_files(spark: SparkSession, fault: str) -> Iterator[None]:
    """The session's writes of data files go wrong inside the block."""
    jvm: Any = spark._jvm
    load_java_class(spark, "FaultyFiles", _SOURCE)
    own = {"fs.file.impl": "FaultyFiles", "fs.file.impl.disable.cache": "true"}
    jvm.java.lang.System.setProperty("qbeast.tests.files", fault)
    try:
        with changed_settings(spark, own):
            yield
    finally:
        jvm.java.lang.System.clearProperty("qbeast.tests.files")
