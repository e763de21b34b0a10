import * as Args from '@oclif/core/args';
import { examplesOf, BaseCommand } from '../../../../cli/base-command.ts';
import { offerFor, readCommandLine, formatReply, resolveOffer, type Shell, SHELLS } from '../../cli/index.ts';
import { wordsBesideCommands } from '../../../../cli/help/topics.ts';
import { additionsOf } from '../../../../cli/host.ts';
import { validateName } from '../../../../keys/key/index.ts';
import { createCatalog } from '../../../../keys/permissions/index.ts';
import { normalizeText } from '../../../../keys/basics/index.ts';

/** The user is waiting at the keyboard, so give up after this time, in milliseconds. */
const WAIT_MS = 5000;
const LOCK_WAIT_MS = 300;
const MAX_NAMES = 100;

/** Which store the line is about. */
interface Place {
  database: string | undefined;
  env: NodeJS.ProcessEnv;
}

/** Answers the scripts of `apikey autocomplete`. After a failure it offers nothing, and prints nothing. */
export default class Complete extends BaseCommand {
  static override hidden = true;
  static override enableJsonFlag = false;
  static override summary = 'Print what may follow the command line in COMP_LINE.';
  static override examples = examplesOf([
    [
      'Complete the name of a command',
      'COMP_LINE="<%= config.bin %> apikey<%= config.topicSeparator %>sh" <%= config.bin %> <%= command.id %> bash',
    ],
  ]);
  static override args = { shell: Args.string({ options: [...SHELLS], required: true, ignoreStdin: true }) };

  async run(): Promise<void> {
    const deadline = setTimeout(() => process.exit(0), WAIT_MS);
    try {
      await this.reply();
    } finally {
      clearTimeout(deadline);
    }
  }

  private async reply(): Promise<void> {
    const { args } = await this.parse(Complete);
    const { env } = process;
    const line = readCommandLine(env['COMP_LINE'] ?? '', { env, breaks: env['COMP_WORDBREAKS'] });
    // Beside the command, zsh gives the whole line, which has variables that are set for it alone; fish sets them.
    const { variables } = readCommandLine(env['COMP_BUFFER'] ?? '', { env });
    const { commands, topicSeparator: separator } = this.config;
    const wordsBeside = (help: boolean) => wordsBesideCommands(this.config, help);
    const offer = offerFor(line, { commands, separator, wordsBeside });
    if (!offer) return;
    const set = { ...env, ...variables, ...line.variables };
    const additions = () => additionsOf({ config: this.config, file: offer.config, env: set });
    // Typing must not send requests to a server.
    const isElsewhere = (offer.server ?? (offer.database === undefined ? set['SVC_API_SERVER'] : '') ?? '') !== '';
    const reply = await resolveOffer(offer, {
      names: async (start) => (isElsewhere ? [] : namesFrom(start, { database: offer.database, env: set })),
      catalog: async () => createCatalog(await additions().catch(() => ({}))),
    });
    const text = formatReply(reply, args.shell as Shell, line);
    await this.terminal.out(text.replaceAll('<%= config.bin %>', this.config.bin));
  }

  override async catch(): Promise<void> {}
}

/** The names that begin with a text. A store that is missing is not created, and an old one not migrated. */
async function namesFrom(start: string, { database, env }: Place): Promise<string[]> {
  const [{ openConnection }, { keyNamesFrom }] = await Promise.all([
    import('../../../../store/open.ts'),
    import('../../../../store/key-repository.ts'),
  ]);
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
