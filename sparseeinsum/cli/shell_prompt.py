"""The shell: a terminal prompt with history and completion."""

from collections.abc import Callable, Iterable, Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory

from sparseeinsum.cli.shell_input import prompt_text
from sparseeinsum.environment.settings import state_folder


class Prompt:
    """A prompt that reads lines; `words` returns the words that can be completed."""

    def __init__(self, words: Callable[[], Sequence[str]]) -> None:
        folder = state_folder()
        folder.mkdir(parents=True, exist_ok=True)
        self._session: PromptSession[str] = PromptSession(
            history=FileHistory(str(folder / "history")), completer=_WordCompleter(words), complete_while_typing=False
        )
        self._waiting: list[str] = []  # lines that were pasted at once

    def next_line(self, is_begun: bool) -> str | None:
        """The next line, or None at the end of the input; `is_begun` selects the prompt of continued lines.

        Raises:
            KeyboardInterrupt: The user pressed Ctrl-C.
        """
        if self._waiting:
            return self._waiting.pop(0)
        try:
            text = self._session.prompt(prompt_text(is_begun))
        except EOFError:
            return None
        first, *self._waiting = text.split("\n")
        return first


class _WordCompleter(Completer):
    """Completes the word at the cursor."""

    def __init__(self, words: Callable[[], Sequence[str]]) -> None:
        self._words = words

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The words that begin with the word at the cursor; case is ignored."""
        del complete_event
        begun = _last_word(document.text_before_cursor)
        for word in self._words():
            if begun and word.lower().startswith(begun.lower()):
                yield Completion(word, start_position=-len(begun))


def _last_word(text: str) -> str:
    end = len(text)
    while end and (text[end - 1].isalnum() or text[end - 1] in "_\\"):
        end -= 1
    return text[end:]
