import { join } from 'node:path';
import type { Command } from '@oclif/core/command';
import { Help } from '@oclif/core/help';
import type { Config, HelpOptions } from '@oclif/core/interfaces';
import { ReaderGoneError } from '../errors.ts';
import { processTerminal } from '../terminal.ts';
import { Columns, renderTemplates, widthOf } from './columns.ts';
import { OwnCommandHelp } from './command-help.ts';
import { HELP_TOPICS, topicNamed, topicText } from './topics.ts';
import { VERB_GROUPS } from './verbs.ts';
import { VERSION_TOPIC } from './version.ts';

/** The verbs of `apikey` that a newcomer needs. */
const FIRST_VERBS = ['create', 'list', 'show', 'update', 'rotate', 'delete', 'exec'];
const FIRST = [
  'apikey',
  ...FIRST_VERBS.map((verb) => `apikey:${verb}`),
  'serve',
  'guard',
  'routes:check',
  'routes:explain',
  'notices:test',
  'backup',
  'restore',
  'doctor',
  'login',
  'logout',
];

const MORE = `svc-api apikey --help lists all commands about keys.
svc-api help <command> or <topic> shows one, with flags and examples.`;

type Rows = [name: string, summary: string][];

/** The help of svc-api itself; a host has its own. */
export default class OwnHelp extends Help {
  protected override CommandHelpClass = OwnCommandHelp;
  private lines: string[] = [];

  constructor(config: Config, options?: Partial<HelpOptions>) {
    super(config, { ...widthOf(process.env), ...options });
    this.render = renderTemplates(this.render);
  }

  /** Collects what is shown: oclif would ignore that it can't be written. */
  protected override log(...lines: string[]): void {
    this.lines.push(...lines);
  }

  /** @throws CliError OUTPUT_FAILED */
  override async showHelp(argv: string[]): Promise<void> {
    this.lines = [];
    await this.collectHelp(argv);
    try {
      if (this.opts.sendToStderr) await processTerminal.note(this.lines.join('\n'));
      else await processTerminal.deliver(this.lines.map((line) => `${line}\n`).join(''));
    } catch (error) {
      if (!(error instanceof ReaderGoneError)) throw error;
    }
  }

  private async collectHelp(argv: string[]): Promise<void> {
    const subject = argv.find((arg) => arg !== 'help' && !arg.startsWith('-')) ?? '';
    const topic = subject === 'version' ? VERSION_TOPIC : topicNamed(subject);
    if (topic) this.log(topicText(topic, this.config));
    else await super.showHelp(argv);
  }

  override async showCommandHelp(command: Command.Loadable): Promise<void> {
    const children = this.sortedCommands.filter(({ id }) => id.startsWith(`${command.id}:`));
    this.log(`${this.wrap(this.summary(command) ?? '', 0)}\n`);
    this.log(`${this.formatCommand(command)}\n`);
    if (children.length > 0) this.log(`${this.grouped(command.id.replaceAll(' ', ':'), children)}\n`);
  }

  protected override async showRootHelp(): Promise<void> {
    const all = this.sortedCommands;
    const isFirst = ({ id }: Command.Loadable) => FIRST.includes(id);
    const first = this.opts.all ? all : FIRST.flatMap((id) => all.filter((command) => command.id === id));
    const others = all.filter((command) => !isFirst(command) && !command.id.includes(':'));
    const topics = Object.entries(HELP_TOPICS).map(([name, { summary }]): Rows[number] => [name, summary]);
    const sections: [string, Rows][] = [
      ['COMMANDS', this.rowsOf(first)],
      ['OTHER COMMANDS', [...this.rowsOf(this.opts.all ? [] : others), ['version', VERSION_TOPIC.summary]]],
      ['HELP TOPICS', topics],
    ];
    const width = Math.max(...sections.flatMap(([, rows]) => rows.map(([name]) => name.length)));
    this.log(
      [
        this.wrap(this.config.pjson.description ?? '', 0),
        this.section('USAGE', '$ svc-api <command> [flags]'),
        ...sections.map(([header, rows]) => this.section(header, this.aligned(rows, width))),
        this.section('LEARN MORE', this.more()),
      ].join('\n\n'),
    );
  }

  /** The commands below one, in the groups that they have. */
  private grouped(parent: string, children: Command.Loadable[]): string {
    const groups = parent === 'apikey' ? Object.entries(VERB_GROUPS) : [];
    const sections = groups.map(([name, verbs]): [string, Command.Loadable[]] => [
      name.toUpperCase(),
      verbs.flatMap((verb) => children.filter(({ id }) => id === `${parent}:${verb}`)),
    ]);
    const others = children.filter((child) => !sections.some(([, commands]) => commands.includes(child)));
    sections.push([groups.length > 0 ? 'OTHER COMMANDS' : 'COMMANDS', others]);
    const width = Math.max(...children.map(({ id }) => id.length));
    return sections
      .map(([header, commands]) => this.section(header, this.aligned(this.rowsOf(commands), width)))
      .join('\n\n');
  }

  private rowsOf(commands: Command.Loadable[]): Rows {
    return commands.map((command) => [command.id.replaceAll(':', ' '), this.summary(command) ?? '']);
  }

  private aligned(rows: Rows, width: number): Rows {
    return rows.map(([name, summary]) => [name.padEnd(width), summary]);
  }

  private more(): string {
    // A path that is broken could not be pasted.
    const documentation = `Documentation: ${this.config.pjson.homepage ?? join(this.config.root, 'README.md')}`;
    return `${this.wrap(MORE)}\n${documentation}`;
  }

  override renderList(...list: Parameters<Columns['renderList']>): string {
    return new Columns(this.config, this.opts).renderList(...list);
  }
}
