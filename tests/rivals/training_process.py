"""A run of `tma-train` that is paused between rounds.

The process prints a line of JSON for each step. Between rounds it is stopped by a signal, and its
memory on the GPU stays. So both contestants of a comparison train in turn, without starting again.
"""

import ctypes
import json
import queue
import signal
import subprocess
import threading
import time

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
# Loaded before a process forks: the loader's locks may be held by another thread then.
LIBC = ctypes.CDLL(None)
# The longest wait for the GPU to finish the step in which a process is stopped.
MOST_WAIT_S = 3.0


def end_with_parent():
    """Ends this process when its parent ends. A stopped process would stay forever."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A process of `tma-train --json`, which is stopped after its first step."""

    def __init__(self, command, timeout_s):
        self.timeout_s = timeout_s
        self.lines = queue.Queue()
        self.lock = threading.Lock()
        self.is_running = False
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent
        )
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        """Reads lines, in a thread of its own, until the process ends."""
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
            with self.lock:
                if not self.is_running:
                    self.process.send_signal(signal.SIGSTOP)
        self.lines.put(None)

    def let(self, is_running):
        """Continues or stops the process."""
        with self.lock:
            self.is_running = is_running
            self.process.send_signal(signal.SIGCONT if is_running else signal.SIGSTOP)

    def line(self):
        """The line of the next step."""
        try:
            line = self.lines.get(timeout=self.timeout_s)
        except queue.Empty:
            raise RuntimeError(f"tma-train has printed no step for {self.timeout_s} s") from None
        if line is None:
            raise RuntimeError(f"tma-train has ended with code {self.process.wait()}")
        return line

    def round(self, steps):
        """Runs so many steps, stops, and returns their lines.

        The process is stopped in the step after them, so the time of each round's first step
        contains a pause.
        """
        self.let(True)
        lines = [self.line() for _ in range(steps)]
        self.let(False)
        time.sleep(min(1.5 * lines[-1]["seconds"], MOST_WAIT_S))
        return lines

    def close(self):
        """Ends the process at once, so that it does not save what nobody reads."""
        self.process.kill()
        self.process.wait()
