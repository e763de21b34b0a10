import type { Config } from '@oclif/core/interfaces';
import { additionsOf } from '../../../cli/host.ts';
import { wordsBesideCommands } from '../../../cli/help/topics.ts';
import { normalizeText } from '../../../keys/basics/index.ts';
import { validateName } from '../../../keys/key/index.ts';
import { createCatalog } from '../../../keys/permissions/index.ts';
import { keyNamesFrom } from './key-names.ts';
import { readCommandLine } from './command-line.ts';
import { formatReply, offerFor, resolveOffer, type Shell } from './offer.ts';

/** The user is waiting at the keyboard, so give up after this time, in milliseconds. */
export const WAIT_MS = 5000;
const LOCK_WAIT_MS = 300;
const MAX_NAMES = 100;

/** Which store the line is about. */
interface Place {
  database: string | undefined;
  env: NodeJS.ProcessEnv;
}

/** Answers the script of a shell: the words that can follow the line in COMP_LINE. Undefined if any can. */
export async function completionsFor(shell: Shell, config: Config): Promise<string | undefined> {
  const { env } = process;
  const line = readCommandLine(env['COMP_LINE'] ?? '', { env, breaks: env['COMP_WORDBREAKS'] });
  // Beside the command, zsh gives the whole line, which has variables that are set for it alone; fish sets them.
  const { variables } = readCommandLine(env['COMP_BUFFER'] ?? '', { env });
  const { commands, topicSeparator: separator } = config;
  const wordsBeside = (help: boolean) => wordsBesideCommands(config, help);
  const offer = offerFor(line, { commands, separator, wordsBeside });
  if (!offer) return undefined;
  const set = { ...env, ...variables, ...line.variables };
  const additions = () => additionsOf({ config, file: offer.config, env: set });
  // Typing must not send requests to a server.
  const isElsewhere = (offer.server ?? (offer.database === undefined ? set['SVC_API_SERVER'] : '') ?? '') !== '';
  const reply = await resolveOffer(offer, {
    names: async (start) => (isElsewhere ? [] : namesFrom(start, { database: offer.database, env: set })),
    catalog: async () => createCatalog(await additions().catch(() => ({}))),
  });
  return formatReply(reply, shell, line).replaceAll('<%= config.bin %>', config.bin);
}

/** The names that begin with a text. A store that is missing is not created, and an old one not migrated. */
async function namesFrom(start: string, { database, env }: Place): Promise<string[]> {
  const { openConnection } = await import('../../../store/open.ts');
  const connection = await openConnection({
    database,
    env,
    mustExist: 'migrated',
    lockWaitMs: LOCK_WAIT_MS,
    busyTimeoutMs: LOCK_WAIT_MS,
  });
  try {
    const names = await keyNamesFrom(connection, normalizeText(start), MAX_NAMES);
    // Another program may have written invalid names to the store.
    return names.filter((name) => validateName(name) === undefined);
  } finally {
    await connection.close();
  }
}
