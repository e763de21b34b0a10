import type { Config } from '@oclif/core/interfaces';
import { bashScript } from './bash.ts';
import { fishScript } from './fish.ts';
import type { Shell } from './reply.ts';
import { zshScript } from './zsh.ts';

/** What a script completes. */
export interface Completed {
  /** The name of the program. */
  bin: string;
  /** How the program is asked, as a shell reads it. */
  ask: string;
  /** A name for the functions of the script. */
  prefix: string;
  /** The commands that are completed, of a program that has others as well. */
  topics: readonly string[] | undefined;
}

const OWN_BIN = 'svc-api';
const TOPICS = ['apikey', 'serve'];

/** The script that makes a shell ask this program what may follow. In a host it is for our commands alone. */
export function scriptOf(shell: Shell, { bin, topicSeparator }: Pick<Config, 'bin' | 'topicSeparator'>): string {
  const completed: Completed = {
    bin,
    ask: `command ${bin} apikey${topicSeparator}complete ${shell}`,
    prefix: `_svc_api_complete_${bin.replaceAll(/\W/g, '_')}`,
    topics: bin === OWN_BIN ? undefined : TOPICS,
  };
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](completed);
}
