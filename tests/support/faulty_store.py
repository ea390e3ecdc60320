"""Storage of Delta's log whose next commit goes wrong in a way that a test chooses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from tests.support.java_classes import load_java_class

REPLY_LOST = "reply lost"
"""The commit is written, and storage says that the file was there already."""
CONNECTION_LOST = "connection lost"
"""The commit is written, and storage says nothing."""
NOT_SENT = "not sent"
"""The connection breaks, and the commit is not written."""
DENIED = "denied"
"""Storage answers that it may not be written."""
FULL = "full"
"""Storage answers that it is full."""
STORAGE_LOST = "storage lost"
"""The commit is written, and storage answers nothing from then on, to the end of the block."""

_SOURCE = """
import io.delta.storage.LocalLogStore;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.util.Collections;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

public class FaultyLogStore extends LocalLogStore {
  public FaultyLogStore(Configuration configuration) {
    super(configuration);
  }

  public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    boolean isCommit = path.getName().matches("[0-9]{20}[.]json");
    String fault = isCommit ? (String) System.getProperties().remove("qbeast.tests.fault") : null;
    if ("not sent".equals(fault)) {
      throw new IOException("connection reset");
    }
    if ("denied".equals(fault)) {
      throw new AccessDeniedException(path.toString());
    }
    if ("full".equals(fault)) {
      throw new IOException("No space left on device");
    }
    super.write(path, actions, overwrite, configuration);
    if (fault == null) {
      return;
    }
    Object next = System.getProperties().remove("qbeast.tests.next");
    if (next != null) {
      long version = Long.parseLong(path.getName().substring(0, 20)) + 1;
      String name = String.format("%020d.json", new Object[] {version});
      Iterator other = Collections.singletonList(next).iterator();
      super.write(new Path(path.getParent(), name), other, overwrite, configuration);
    }
    if ("reply lost".equals(fault)) {
      throw new FileAlreadyExistsException(path.toString());
    }
    if ("storage lost".equals(fault)) {
      System.setProperty("qbeast.tests.away", "true");
    }
    throw new IOException("connection reset");
  }

  public Iterator listFrom(Path path, Configuration configuration) throws IOException {
    if (System.getProperty("qbeast.tests.away") != null) {
      throw new IOException("storage is away");
    }
    return super.listFrom(path, configuration);
  }
}
"""


class FaultyStore:
    """Storage of the tables that are first opened while it is installed."""

    def __init__(self, spark: SparkSession) -> None:
        self._properties: Any = spark._jvm.java.lang.System

    @contextmanager
    def fails(self, fault: str, *, next_commit: str | None = None) -> Iterator[None]:
        """The next commit goes wrong, and must be tried inside the block.

        Args:
            next_commit: what another writer commits right after it.
        """
        if next_commit is not None:
            self._properties.setProperty("qbeast.tests.next", next_commit)
        self._properties.setProperty("qbeast.tests.fault", fault)
        try:
            yield
        finally:
            self._properties.clearProperty("qbeast.tests.away")
            tried = self._properties.clearProperty("qbeast.tests.fault") is None
        assert tried


@contextmanager
def installed(spark: SparkSession) -> Iterator[FaultyStore]:
    """Local tables that are first opened inside the block have such a log."""
    load_java_class(spark, "FaultyLogStore", _SOURCE)
    jvm: Any = spark._jvm
    conf, key = jvm.org.apache.spark.SparkEnv.get().conf(), "spark.delta.logStore.file.impl"
    conf.set(key, "FaultyLogStore")
    try:
        yield FaultyStore(spark)
    finally:
        conf.remove(key)
