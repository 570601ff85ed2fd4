import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from medhop_dspy.errors import ServerError, ServerUnavailableError
from medhop_dspy.lm.process import ServerProcess, bindable, new_log

SERVER = """
import http.server, signal, subprocess, sys, threading, time
mode, port = sys.argv[1], int(sys.argv[2])
if mode == "ends":
    print("first line"); print("out of memory"); sys.exit(3)
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if mode == "worker":
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    print(worker.pid, flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if mode == "loading" else 200); self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
server.serve_forever()
"""


@pytest.fixture
def start(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    started = []

    def make(mode):
        port = bindable(0)
        started.append(
            ServerProcess([sys.executable, str(script), mode, str(port)], port=port, log=tmp_path / "logs" / "a.log")
        )
        return started[-1]

    yield make
    for server in started:
        server.stop()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone(pid: int, within: float = 5.0) -> bool:
    deadline = time.monotonic() + within
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pid)


def test_it_is_healthy_and_then_gone(start):
    with start("serves") as server:
        server.wait_until_healthy(20)
        assert server.running
    assert not server.running
    assert gone(server.pid)
    server.stop()


def test_it_is_stopped_on_every_way_out(start):
    server = start("serves")
    with pytest.raises(KeyboardInterrupt), server:
        server.wait_until_healthy(20)
        raise KeyboardInterrupt
    assert not server.running


def test_an_early_end_shows_the_last_words(start):
    with pytest.raises(ServerError, match=r"ended with code 3: first line \| out of memory") as caught:
        start("ends").wait_until_healthy(20)
    assert str(caught.value.hint).endswith("a.log.")


def test_a_server_that_never_gets_ready(start):
    with pytest.raises(ServerUnavailableError, match=r"not ready after 0\.5 s"):
        start("loading").wait_until_healthy(0.5)


def test_a_server_that_ignores_the_polite_signal(start, monkeypatch):
    monkeypatch.setattr("medhop_dspy.lm.process.STOP_TIMEOUT", 0.3)
    server = start("stubborn")
    server.wait_until_healthy(20)
    server.stop()
    assert gone(server.pid)


def test_workers_are_ended_too(start):
    server = start("worker")
    server.wait_until_healthy(20)
    worker = int(server.log.read_text().split()[0])
    assert alive(worker)
    server.stop()
    assert gone(worker)


def test_a_program_that_is_not_there(tmp_path):
    with pytest.raises(ServerError, match="cannot start"):
        ServerProcess([str(tmp_path / "no-such")], port=1, log=tmp_path / "a.log")


def test_old_logs_are_removed(tmp_path):
    (tmp_path / "logs").mkdir()
    for age in range(12):
        log = tmp_path / "logs" / f"llamacpp-{age}.log"
        log.touch()
        os.utime(log, (1000 - age, 1000 - age))
    assert new_log(tmp_path, "llamacpp-99") == tmp_path / "logs" / "llamacpp-99.log"
    assert {log.name for log in (tmp_path / "logs").iterdir()} == {f"llamacpp-{age}.log" for age in range(9)}


def test_a_taken_port_is_named(remote):
    port = int(remote.url.rpartition(":")[2])
    with pytest.raises(ServerError, match=f"cannot listen on 127.0.0.1:{port}"):
        bindable(port)
    assert bindable(0) > 0


def test_the_childs_input_closes_when_the_parent_is_killed(tmp_path):
    leaver = tmp_path / "leaver.py"
    leaver.write_text("import sys; sys.stdin.read()")
    parent = textwrap.dedent(f"""
        import sys, time
        from pathlib import Path
        from medhop_dspy.lm.process import ServerProcess
        server = ServerProcess([sys.executable, {str(leaver)!r}], port=1, log=Path({str(tmp_path / "b.log")!r}))
        print(server.pid, flush=True)
        time.sleep(60)
    """)
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        child = int(process.stdout.readline())
        assert alive(child)
        os.kill(process.pid, signal.SIGKILL)
    assert gone(child)
