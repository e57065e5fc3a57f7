#!/usr/bin/env python3
"""The rlx command from outside: usage, exit codes, standard output that fails, signals, hostile paths.

usage: run.py RLX_COMMAND SOURCE_FOLDER [NAME...]"""
import os
import pathlib
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

import cases

RLX = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(sys.argv[2]).resolve()
CORPUS = ROOT / "tests/fuzz/corpus"
TOKENIZER = CORPUS / "tokenizer_load/bpe.json"


def rlx(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    if "input" in options:
        options.pop("stdin")
    return subprocess.run([str(RLX), *map(str, arguments)], capture_output="stdout" not in options, text=True, timeout=120,
                          **options)


def expect(result, code, pattern="", stream="stderr"):
    text = getattr(result, stream) or ""
    assert result.returncode == code, f"exit {result.returncode}, not {code}: {result.stderr}"
    assert re.search(pattern, text, re.S), f"{pattern!r} is not in {text!r}"
    if code == 0:
        assert not result.stderr or stream == "stderr", result.stderr


def large_gguf(path, megabytes):
    """One f32 tensor."""
    rows = megabytes * 1024 * 1024 // 4096
    name = b"w"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", 1) + name
    head += struct.pack("<IQQIQ", 2, 1024, rows, 0, 0)
    head += b"\0" * (-len(head) % 32)
    with open(path, "wb") as out:
        out.write(head)
        block = os.urandom(1 << 20)
        for _ in range(megabytes):
            out.write(block)


def test_version():
    for word in ("--version", "-V", "version"):
        expect(rlx(word), 0, r"^rlx \d+\.\d+\.\d+\n$", "stdout")


def test_help():
    listing = rlx("help")
    expect(listing, 0, "inspect.*tokenize", "stdout")
    assert rlx("--help").stdout == listing.stdout
    expect(rlx("help", "convert"), 0, r"Usage: rlx convert \[OPTIONS\].*--type", "stdout")
    assert rlx("convert", "--help").stdout == rlx("help", "convert").stdout
    expect(rlx("help", "conver"), 2, "unknown command 'conver'; did you mean 'convert'")


def test_unknown_commands():
    expect(rlx("inspec"), 2, "^rlx: unknown command 'inspec'; did you mean 'inspect'; see 'rlx help'\n$")
    expect(rlx("nosuchthing"), 2, "^rlx: unknown command 'nosuchthing'; see 'rlx help'\n$")
    expect(rlx(), 2, "a command is required")
    expect(rlx("convert", "a"), 2, "OUT is required; see 'rlx help convert'")


def test_wrong_calls():
    for arguments, message in (
            ("ops --nosuch", "there is no option '--nosuch'; see 'rlx help ops'"),
            ("run a --devise=cpu", "there is no option '--devise'; did you mean '--device'; see 'rlx help run'"),
            ("verify a b", "'b' is one argument too many; see 'rlx help verify'"),
            ("generate", "MODEL is required; see 'rlx help generate'"),
            ("generate m -p", "--prompt: its value is missing; see 'rlx help generate'"),
            ("generate m -p a -n x", "--tokens: 'x' is not a number of 0 or more; see 'rlx help generate'"),
            ("generate m -p a -n -1", "--tokens: '-1' is not a number of 0 or more; see 'rlx help generate'"),
            ("generate m -p a -c 0", "--context: '0' is not a number above 0; see 'rlx help generate'"),
            ("train a --data b --lr x", "--lr: 'x' is not a number of 0 or more; see 'rlx help train'"),
            ("train a --data b --steps 1.5", "--steps: '1.5' is not a whole number; see 'rlx help train'"),
            ("train a --data b --schedule cosine --power 2",
             "--power does nothing with --schedule cosine; it is for polynomial; see 'rlx help train'"),
            ("train a --data b --min-lr 1e-5",
             "--min-lr does nothing with --schedule constant; it is for linear, cosine, polynomial; see 'rlx help train'"),
            ("train a --data b --schedule exponential --decay-every 3",
             "--decay-every does nothing with --schedule exponential; it is for step; see 'rlx help train'"),
            ("train a --data b --schedule inverse_sqrt",
             "--schedule inverse_sqrt needs --warmup: its rate rises over these steps and falls from there; see 'rlx help train'"),
            ("finetune a b -o c --schedule inverse_sqrt",
             "--schedule inverse_sqrt needs --warmup: its rate rises over these steps and falls from there; see 'rlx help finetune'"),
            ("train a --data b --save-average c", "--save-average requires --average; see 'rlx help train'"),
            ("train a --data b --seed -1", "--seed: '-1' is not a number of 0 or more; see 'rlx help train'"),
            ("run a --random -1", "--random: '-1' is not a number of 0 or more; see 'rlx help run'"),
            ("generate m -p a --seed -1", "--seed: '-1' is not a number of 0 or more; see 'rlx help generate'"),
            ("opt a --pass cse --dump all", "--pass excludes --dump; see 'rlx help opt'"),
            ("opt a --pass cse --explain x", "--pass excludes --explain; see 'rlx help opt'"),
            ("opt a --pass cse --no-fuse", "--pass excludes --no-fuse; see 'rlx help opt'"),
            ("opt a --dump all --explain x", "--dump excludes --explain; see 'rlx help opt'"),
            ("inspect a --json --html b", "--json excludes --html; see 'rlx help inspect'"),
            ("completion tcsh", "SHELL: tcsh not in {bash,zsh,fish}; see 'rlx help completion'")):
        expect(rlx(*arguments.split()), 2, f"^rlx: {re.escape(message)}\n$")


def test_completion():
    words = {"bash": "complete -F _rlx rlx", "zsh": "#compdef rlx", "fish": "complete -c rlx"}
    for shell, pattern in words.items():
        result = rlx("completion", shell)
        expect(result, 0, re.escape(pattern), "stdout")
        for word in ("inspect", "convert", "deflate", "no-generation-prompt"):
            assert word in result.stdout, (shell, word)
        if shutil.which(shell):
            subprocess.run([shell, "-n"], input=result.stdout, text=True, check=True)
    expect(rlx("completion", "tcsh"), 2, "tcsh")
    # What bash offers for `rlx in`, `rlx convert --de` and `rlx completion z`.
    script = rlx("completion", "bash").stdout
    for line, offered in (("rlx in", "inspect"), ("rlx convert --de", "--deflate"), ("rlx completion z", "zsh")):
        words = line.split()
        ask = script + f"\nCOMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _rlx; echo \"${{COMPREPLY[*]}}\"\n"
        got = subprocess.run(["bash"], input=ask, text=True, capture_output=True, check=True).stdout
        assert got.strip() == offered, (line, got)


def test_manual():
    page = rlx("man").stdout
    assert page.startswith(".TH RLX 1"), page[:40]
    for word in ("tokenize", "safetensors", "EXIT STATUS", "RLX\\_THREADS" if "RLX\\_" in page else "RLX_THREADS"):
        assert word in page, word
    if shutil.which("groff"):
        warnings = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z"], input=page, text=True, capture_output=True).stderr
        assert not warnings, warnings


def test_standard_output_that_fails():
    for arguments, text in ((("ops",), ""), (("--help",), ""), (("--version",), ""), (("help", "ops"), ""),
                            (("tokenize", TOKENIZER), "ab\n"), (("completion", "bash"), "")):
        with open("/dev/full", "w") as full:
            expect(rlx(*arguments, input=text, stdout=full, stderr=subprocess.PIPE), 1,
                   "^rlx: cannot write standard output(: No space left on device)?\n$")
        closed = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', str(RLX), *map(str, arguments)], input=text, text=True,
                                stderr=subprocess.PIPE, timeout=60)
        expect(closed, 1, "cannot write standard output")


def test_closed_output_is_not_written_into_the_file(folder):
    shutil.copy(CORPUS / "gguf/types.gguf", folder / "a.gguf")
    rlx("convert", folder / "a.gguf", folder / "b.gguf")
    subprocess.run(["sh", "-c", 'exec "$0" convert a.gguf c.gguf >&- 2>&-', str(RLX)], cwd=folder, timeout=60)
    assert (folder / "c.gguf").read_bytes() == (folder / "b.gguf").read_bytes()


def test_an_index_that_names_itself(folder):
    (folder / "config.json").write_text('{"model_type":"llama"}')
    (folder / "model.safetensors.index.json").write_text('{"weight_map":{"a":"model.safetensors.index.json"}}')
    expect(rlx("inspect", folder), 1, "model.safetensors.index.json': header length")
    expect(rlx("convert", folder, folder / "o.npz"), 1, "header length")


def test_pipes_and_links(folder):
    os.mkfifo(folder / "ff")
    for command in ("inspect", "tokenize", "template", "verify", "fmt"):
        expect(rlx(command, folder / "ff"), 1, "is not a regular file; it is a pipe")
    expect(rlx("convert", folder / "ff", folder / "o.npz"), 1, "is not a regular file")
    (folder / "loop").mkdir()
    (folder / "loop/config.json").write_text("{}")
    (folder / "loop/model.safetensors").symlink_to("b")
    (folder / "loop/b").symlink_to("model.safetensors")
    expect(rlx("inspect", folder / "loop"), 1, "Too many levels of symbolic links")


def test_an_input_that_shrinks(folder):
    large_gguf(folder / "in.gguf", 96)
    run = subprocess.Popen([str(RLX), "convert", "in.gguf", "out.npz", "--deflate"], cwd=folder, stderr=subprocess.PIPE,
                           stdout=subprocess.DEVNULL, text=True)
    while not list(folder.glob("out.npz.tmp-*")):
        assert run.poll() is None, run.communicate()
    os.truncate(folder / "in.gguf", 1000000)
    message = run.communicate(timeout=120)[1]
    assert run.returncode == 1 and "'in.gguf' became shorter while it was read" in message, (run.returncode, message)
    assert sorted(p.name for p in folder.iterdir()) == ["in.gguf"]


def test_signals_leave_nothing(folder):
    large_gguf(folder / "in.gguf", 96)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        run = subprocess.Popen([str(RLX), "convert", "in.gguf", "out.npz", "--deflate"], cwd=folder, stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL)
        while not list(folder.glob("out.npz.tmp-*")):
            assert run.poll() is None, run.communicate()
        run.send_signal(number)
        run.communicate(timeout=120)
        assert run.returncode == -number, run.returncode
        assert sorted(p.name for p in folder.iterdir()) == ["in.gguf"]


def test_output_is_safe(folder):
    (folder / "victim").write_text("precious")
    source = CORPUS / "safetensors/small.safetensors"
    run = subprocess.run(["sh", "-c", 'ln -s victim at.npz.tmp$$; exec "$0" convert "$1" at.npz', str(RLX), str(source)], cwd=folder,
                         capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert (folder / "victim").read_text() == "precious" and not (folder / "at.npz").is_symlink()
    os.chmod(folder / "at.npz", 0o600)
    expect(rlx("convert", source, folder / "at.npz"), 0)
    assert stat.S_IMODE(os.stat(folder / "at.npz").st_mode) == 0o600
    expect(rlx("convert", source, "/dev/full"), 1, "must end in .gguf, .safetensors or .npz")


def test_templates_of_other_files(folder):
    # The model is looked at before standard input: this would wait for ever otherwise.
    run = subprocess.Popen([str(RLX), "template", str(folder / "none")], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.01)
    run.wait(timeout=60)
    assert run.returncode == 1 and "No such file" in run.stderr.read()
    expect(rlx("template", CORPUS / "safetensors/small.safetensors", input="[]"), 1, "holds no chat template")
    expect(rlx("tokenize", CORPUS / "npz/stored.npz", input="a"), 1, "holds no tokenizer")


def test_truncated_files_say_what_they_are(folder):
    for name, pattern in (("safetensors/small.safetensors", "safetensors '.*cut.*': header at offset 8: needs"),
                          ("gguf/types.gguf", "gguf '.*cut.*(needs|do not fit)"), ("npz/stored.npz", "npz '.*no zip end record")):
        cut = folder / ("cut" + pathlib.Path(name).suffix)
        cut.write_bytes((CORPUS / name).read_bytes()[:40])
        expect(rlx("inspect", cut), 1, pattern)


def test_python_numbers(folder):
    (folder / "config.json").write_text('{"model_type": "mamba2", "time_step_limit": [0.0, Infinity], "x": NaN}')
    shutil.copy(CORPUS / "safetensors/small.safetensors", folder / "model.safetensors")
    expect(rlx("inspect", folder), 0, "architecture  mamba2", "stdout")
    expect(rlx("inspect", "--json", folder), 0, '"inf"', "stdout")


def test_progress(folder):
    source = CORPUS / "gguf/types.gguf"
    assert rlx("convert", source, folder / "a.gguf").stderr == ""
    lines = rlx("convert", source, folder / "a.gguf", "--progress", "lines").stderr.splitlines()
    assert lines[0].startswith("rlx: convert: 0 %, 0 B of ") and lines[-1].startswith("rlx: convert: 100 %, "), lines
    bar = rlx("convert", source, folder / "a.gguf", "--progress", "bar").stderr
    # Text mode of Python turns a return into a new line.
    assert "\nconvert [" in bar and bar.endswith("\n\033[K"), bar
    expect(rlx("convert", source, folder / "a.gguf", "--progress", "much"), 2, "--progress")


sys.exit(1 if cases.run(globals(), sys.argv[3:]) else 0)
