import type { Terminal } from '../terminal.ts';

/** After so many there is a line. */
const STEP = 100_000;

/** Notes how far a long command has come, if somebody may be watching. */
export function progressOf(
  terminal: Pick<Terminal, 'isErrorTerminal' | 'note'>,
  what: { verb: string; plural: string },
): (done: number) => Promise<void> {
  let noted = 0;
  return async (done) => {
    // It starts again where the log was pruned meanwhile.
    if (done < noted) noted = 0;
    if (!terminal.isErrorTerminal || done < noted + STEP) return;
    noted = done - (done % STEP);
    await terminal.note(`${what.verb} ${noted} ${what.plural}.`);
  };
}
