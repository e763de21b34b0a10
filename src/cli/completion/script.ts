import type { Config } from '@oclif/core/interfaces';
import { bashScript } from './bash.ts';
import type { Completed } from './completed.ts';
import { fishScript } from './fish.ts';
import type { Shell } from './reply.ts';
import { zshScript } from './zsh.ts';

const OWN_BIN = 'svc-api';
const TOPICS = ['apikey', 'backup', 'doctor', 'guard', 'login', 'logout', 'notices', 'restore', 'routes', 'serve'];

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
