"""The command `plural`: its nouns and verbs, and the one place where an error becomes a message and a code.

Exit codes: 0 done; 1 ran, and Trials failed or a score is below `--min-score`; 2 wrong use of the command;
3 the project is invalid; 4 a key or credential is missing; 5 the machine could not; 130 interrupted; 70 a bug
of ours.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from plural_gym.cli import benchmark, calibrate, doctor, init, job, play, review, trial, verifier, words
from plural_gym.cli import run as run_command
from plural_gym.cli.terminal import Interrupted, counted, error_record, message_of, print_json, say, stderr
from plural_gym.errors import MachineError, PluralError, ProjectError, UsageError

BUG = 70
"""Exit code for a fault of this package, apart from those that mean something: sysexits' EX_SOFTWARE."""


class PluralCommand(TyperGroup):
    """The whole command line; whatever a command raises ends here."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command that `args` name, and exit with its code."""
        given = list(sys.argv[1:] if args is None else args)
        run_it = super().main
        sys.exit(
            guarded(
                lambda: run_it(given, prog_name, complete_var, False, windows_expand_args, **extra),
                as_json="--json" in given,
            )
        )

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C becomes an error like any other."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("") from None


def guarded(command: Callable[[], Any], as_json: bool) -> int:
    """The exit code of `command`; an error is told on stderr, or with `as_json` on stdout."""
    try:
        code = command()
    except PluralError as error:
        return _tell(error, as_json)
    except typer.Abort:
        return _tell(Interrupted(""), as_json)
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        return _tell(MachineError(f"{error.strerror or error}{place}."), as_json)
    except Exception as error:
        if hasattr(error, "format_message"):
            return _tell_usage(error, as_json)
        return _tell_bug(error, as_json)
    return code if isinstance(code, int) else 0


def _tell(error: PluralError, as_json: bool) -> int:
    if as_json:
        print_json({"error": error_record(error)})
    elif isinstance(error, ProjectError):
        lines = [str(problem) for problem in error.problems]
        if len(lines) > 1:
            lines.append(f"{counted(len(lines), 'problem')}.")
        if stderr().is_terminal:
            _box("\n".join(lines))
        else:
            for line in lines:
                say(line)
    elif str(error):
        _box(message_of(error))
    return error.exit_code


def _tell_usage(error: Any, as_json: bool) -> int:
    """What typer says of a command line that it cannot take."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return 0
    message = error.format_message()
    if as_json:
        print_json({"error": {"type": "UsageError", "message": message, "exit_code": error.exit_code}})
        return int(error.exit_code)
    context = getattr(error, "ctx", None)
    if context is not None:
        say(context.get_usage())
        say(f"Try '{context.command_path} --help'.")
    _box(message)
    return int(error.exit_code)


def _tell_bug(error: Exception, as_json: bool) -> int:
    import traceback

    say("".join(traceback.format_exception(error)).rstrip())
    say()
    message = f"this is a bug of plural-gym {_version()}; please report it with the lines above."
    if as_json:
        print_json({"error": {"type": type(error).__name__, "message": str(error), "exit_code": BUG}})
    _box(message)
    return BUG


def _box(message: str) -> None:
    """An error for people: framed in a terminal, a plain line elsewhere."""
    console = stderr()
    if not console.is_terminal:
        say(f"Error: {message}")
        return
    from rich.panel import Panel
    from rich.text import Text

    console.print(Panel(Text(message), title="Error", title_align="left", border_style="red"))


app = typer.Typer(
    name="plural",
    cls=PluralCommand,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version() -> str:
    from importlib.metadata import version

    return version("plural-gym")


@app.callback(invoke_without_command=True)
def plural(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --version: print it as JSON.")] = False,
) -> None:
    """Turns work that an AI agent can do into environments, benchmarks and training data.

    Start with: plural init my-project
    """
    if version:
        if as_json:
            print_json({"version": _version()})
        else:
            typer.echo(f"plural-gym {_version()}")
        raise typer.Exit
    command = context.invoked_subcommand
    if command is None:
        raise UsageError("say which command; plural --help lists them.")
    if as_json:
        raise UsageError(f"--json stands after the command: plural {command} ... --json")


_RECORDS = {
    "job": "Look at Jobs, go on with them, repeat them.",
    "trial": "Look at Trials.",
    "review": "Score the work that waits for a person.",
}


def _register() -> None:
    """Add every command; those of a noun that has a module of its own come from there."""
    init.register(app)
    run_command.register(app)
    play.register(app)
    nouns = words.register(app)
    for noun, about in _RECORDS.items():
        nouns[noun] = typer.Typer(help=about, no_args_is_help=True)
    modules = {"job": job, "trial": trial, "review": review, "verifier": verifier, "benchmark": benchmark}
    for noun, module in modules.items():
        module.register(nouns[noun])
    calibrate.register(nouns["verifier"])
    for noun, group in nouns.items():
        if group.registered_commands:
            app.add_typer(group, name=noun, rich_help_panel=words.PANELS.get(noun, "Records"))
    doctor.register(app)


_register()


def run() -> None:
    """The entry point of the command `plural`."""
    app()
