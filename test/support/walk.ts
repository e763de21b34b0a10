import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { Machine } from './machine.ts';
import { ROOT } from './process.ts';
import type { TerminalSession } from './pty.ts';

/** A step of a page: a file to write, or commands to paste, with the expected output. */
type Step = { file: string; text: string } | { commands: string; seen: string | undefined };

export interface WalkOptions {
  /** Starts what the page expects to be running. */
  setup?: string;
  /** Adapts commands and files to this machine, such as a server elsewhere. */
  adapt?: (text: string) => string;
  /** A block of commands that asks for confirmation, which is given. */
  confirmed?: string;
}

const BLOCK = /^```(\w+)\n(.*?)^```$/gms;
/** A sentence that names the file of the next block. */
const FILE = /`(~?[\w./-]+\.\w+)`[^`\n]*:\n\n$/;
/** A program that runs until it is stopped, at the end of a block. */
const SERVER = /^(?:svc-api (?:serve|guard)|node \w+\.m?js)\b(?!.*&$).*\n$/m;

/** The steps of a page. Other blocks are not run. */
function stepsOf(page: string): Step[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const blocks = [...text.matchAll(BLOCK)];
  return blocks.flatMap(({ 0: whole, 1: language, 2: content, index }, at): Step[] => {
    const next = blocks[at + 1];
    if (language === 'sh') {
      const follows = next?.[1] === 'text' && !text.slice(index + whole.length, next.index).includes('\n#');
      return [{ commands: content!, seen: follows ? next[2]! : undefined }];
    }
    const [, file] = FILE.exec(text.slice(0, index)) ?? [];
    return file === undefined ? [] : [{ file, text: content! }];
  });
}

/** Follows a page in one terminal, and checks that the output matches the page. */
export async function walk(
  page: string,
  machine: Machine,
  { setup, adapt = (text) => text, confirmed }: WalkOptions = {},
) {
  const terminal = machine.terminal('bash');
  try {
    await terminal.answer('READY', "PS1=''; stty -echo; set +m; bind 'set enable-bracketed-paste off'; echo be''gin\r");
    await terminal.see('begin');
    if (setup !== undefined) await paste(terminal, setup);
    for (const [index, step] of stepsOf(page).entries()) {
      if ('file' in step) {
        const path = join(machine.folder, step.file.replace('~', 'home'));
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, adapt(step.text), { mode: 0o600 });
        continue;
      }
      const commands = adapt(step.commands);
      if (commands === '') continue;
      const goesOn = SERVER.test(commands.replaceAll(/\\\n\s*/g, ''));
      const printed = goesOn
        ? await startServer(terminal, commands, machine, `${index}.log`)
        : await paste(terminal, commands, commands.trim() === confirmed);
      if (step.seen !== undefined) assertSeen(printed, step.seen, goesOn);
    }
  } finally {
    terminal.close();
  }
}

/** @returns the output of the commands */
async function paste(terminal: TerminalSession, commands: string, asks = false) {
  const from = terminal.raw.length;
  // A prompt would read the following lines.
  const next = asks ? ';' : '\r';
  terminal.type(`${commands.trimEnd().replaceAll('\n', '\r')}${next}echo; echo do''ne\r`);
  if (asks) await terminal.answer('(y/N)', 'y\r');
  await terminal.see('\ndone\n');
  return shownIn(terminal.raw.slice(from)).replace(/\ndone\n$/, '');
}

/** The lines that stay on a terminal: a slow command shows its progress on a line that it clears. */
function shownIn(raw: string): string {
  // oxlint-disable-next-line no-control-regex
  return stripVTControlCharacters(raw.replaceAll(/[^\n]*\r\u001b\[K/g, '')).replaceAll('\r', '');
}

/** Starts a command that would block the terminal, as in a second one. @returns its first output, without its log */
async function startServer(terminal: TerminalSession, commands: string, { folder }: Machine, log: string) {
  terminal.type(
    `( ${commands.trimEnd().replaceAll('\n', '\r')}\r) > ${join(folder, log)} 2> ${join(folder, log)}.errors &\r`,
  );
  terminal.type(`until grep -qi listening ${log}; do sleep 0.1; done; echo star''ted\r`);
  await terminal.see('started');
  return readFileSync(join(folder, log), 'utf8');
}

/** Compares line by line; "…" stands for any text. Later output of a server is ignored. */
function assertSeen(printed: string, seen: string, goesOn: boolean): void {
  const lines = (text: string) => text.split('\n').flatMap((line) => line.trim().replaceAll(/ +/g, ' ') || []);
  const pattern = lines(seen)
    .map((line) => line.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll('…', '.*'))
    .join('\n');
  const found = lines(printed).join('\n');
  assert.ok(new RegExp(`^${pattern}${goesOn ? '' : '$'}`, 's').test(found), `Seen:\n${printed}\nExpected:\n${seen}`);
}
