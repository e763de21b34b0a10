import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { BIN } from './process.ts';
import { TerminalSession } from './pty.ts';
import { tempFolder } from './temp.ts';

/** A user with a home folder, who has a program in the PATH. */
export interface User {
  home: string;
  env: NodeJS.ProcessEnv;
}

/** A shell user. The program is ours unless another file is given. */
export function newUser({ bin = 'svc-api', file = BIN }: { bin?: string; file?: string } = {}): User {
  const home = tempFolder();
  const folder = tempFolder();
  symlinkSync(file, join(folder, bin));
  const path = [folder, dirname(process.execPath), process.env['PATH']].join(delimiter);
  const folders = { XDG_CACHE_HOME: join(home, '.cache'), XDG_CONFIG_HOME: join(home, '.config'), ZDOTDIR: home };
  return { home, env: { HOME: home, PATH: path, LC_ALL: 'C.UTF-8', SHELL: '/bin/bash', ...folders } };
}

interface Shell {
  /** Arguments for an interactive shell. */
  args: readonly string[];
  /** Its start-up file. */
  rc: string;
  /** Code that makes the shell print the words of a command instead of running it. */
  printing: (bin: string) => string;
}

export const SHELLS: Readonly<Record<string, Shell>> = {
  bash: {
    args: ['--noprofile', '-i'],
    rc: '.bashrc',
    printing: (bin) => `${bin}() { printf '(%s)' "$@"; echo; }; PS1='ready> '; bind 'set bell-style none'\n`,
  },
  zsh: {
    args: ['-i'],
    rc: '.zshrc',
    printing: (bin) => `${bin}() { printf '(%s)' "$@"; echo; }; PS1='ready> '; setopt no_beep\n`,
  },
  fish: {
    args: ['-i'],
    rc: '.config/fish/config.fish',
    printing: (bin) =>
      `function ${bin}; printf '(%s)' $argv; echo; end\nfunction fish_prompt; echo 'ready> '; end\nset -g fish_greeting\n`,
  },
};

/**
 * Types lines, including tabs, and returns the words of each resulting command. The home folder is replaced by `HOME`.
 */
export async function typedIn(
  shell: keyof typeof SHELLS,
  { home, env }: User,
  lines: readonly string[],
  { bin = 'svc-api', setup = '' } = {},
): Promise<string[]> {
  const { args, rc, printing } = SHELLS[shell]!;
  const path = join(home, rc);
  mkdirSync(dirname(path), { recursive: true });
  const printingRc = (existing: string) => writeFileSync(path, existing + printing(bin));
  printingRc(textOf(path).replace(printing(bin), ''));
  const session = new TerminalSession(shell, args, { ...env, PWD: home });
  try {
    await session.answer('ready> ', `${setup}cd; true\r`);
    const words = [];
    for (const line of lines) {
      await session.see('ready> ');
      const from = session.screen.length;
      session.type(`${line}\r`);
      await session.see(')\n');
      words.push(/^\(.*\)$/m.exec(session.screen.slice(from))![0].replaceAll(home, 'HOME'));
    }
    return words;
  } finally {
    session.close();
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
