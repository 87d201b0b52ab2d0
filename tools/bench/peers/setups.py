"""A model and each program's own format of it, made once and again when the program changes."""
import importlib.metadata

import models
import processes


class Setup:
    def __init__(self, options, model):
        self.options, self.model = options, model
        self.directory = models.checkpoint(model, options.work)
        self.checkpoint = models.Checkpoint(self.directory)
        self.bundle = self.folder("batten") / "bundle.batten"

    def folder(self, program):
        return self.options.work / self.model / program

    def stamp(self, program):
        return self.folder(program) / "made-by"

    def maker(self, program):
        """What tells whether a program is the one that made its files."""
        if program == "batten":
            paths = [self.options.batten.parent / "batten-compile", self.options.build / "runtime/libbatten_runtime.a"]
            try:
                return " ".join(str(path.stat().st_mtime_ns) for path in paths)
            except FileNotFoundError as error:
                raise processes.Failed(f"{error.filename} is not there; build it first, or name another build (--build)") from None
        try:
            return importlib.metadata.version(program)
        except importlib.metadata.PackageNotFoundError:
            raise processes.Failed(f"{program} is not installed (install.sh does it)") from None

    def worker(self, program, threads):
        return processes.WorkerProcess(program, self.directory, self.folder(program), threads, {"BATTEN_BUILD": str(self.options.build)})

    def prepare(self, program):
        maker, stamp = self.maker(program), self.stamp(program)
        if stamp.exists() and stamp.read_text() == maker:
            return
        self.options.say(f"making {program}'s files of {self.model}")
        with self.worker(program, 1) as worker:
            worker.ask("prepare")
        stamp.write_text(maker)
