"""Assigning recorded stacks to parts of the work."""

from benchmarks.profiling import part_of, stacks

PRINTED = """jdk.ExecutionSample {
  startTime = 02:40:58.395
  sampledThread = "Executor task idle worker#3" (javaThreadId = 202)
  state = "STATE_RUNNABLE"
  stackTrace = [
    java.util.Arrays.copyOf(byte[], int) line: 3
    org.apache.parquet.column.impl.ColumnWriterBase.write(Binary, int, int) line: 204
    org.apache.spark.sql.execution.datasources.FileFormatWriter$.executeTask() line: 1
  ]
}

jdk.NativeMethodSample {
  sampledThread = "shuffle-client-6-1" (javaThreadId = 203)
  stackTrace = [
    io.netty.channel.epoll.Native.epollWait(FileDescriptor, int) line: 193
  ]
}

jdk.NativeMethodSample {
  sampledThread = "Executor task launch worker for task 0.0" (javaThreadId = 204)
  stackTrace = [
    net.jpountz.lz4.LZ4JNI.LZ4_compress_limitedOutput(byte[], int)
    net.jpountz.lz4.LZ4JNICompressor.compress(byte[], int) line: 36
  ]
}
"""


def test_task_threads_count_for_their_innermost_known_method() -> None:
    found = list(stacks(PRINTED))
    assert [len(frames) for frames in found] == [3, 1]
    assert [part_of(frames) for frames in found] == ["Parquet", "shuffle"]
    assert part_of(["java.util.Arrays.copyOf(byte[], int)"]) == "other"
