import { join } from 'node:path';
import type { Command } from '@oclif/core/command';
import { CommandHelp, Help } from '@oclif/core/help';
import type { Config, HelpOptions, Topic } from '@oclif/core/interfaces';
import { ReaderGoneError } from '../errors.ts';
import { shortestId } from '../output.ts';
import { Columns, HELP_TOPICS, renderTemplates, topicNamed, topicText, VERSION_TOPIC, widthOf } from './topics.ts';
import { groupsOf } from './verbs.ts';
import { processTerminal } from '../terminal.ts';
import { packageFolder } from '../../version.ts';

const INDENTATION = '  ';
const CONTINUED = ' \\';

type Group = readonly string[];

/**
 * A shell command wrapped to a width, with a backslash at the end of each line except the last, so that it can be
 * pasted. Words stay whole, and a flag keeps its value. Existing line breaks are kept.
 */
function wrapCommand(command: string, width: number): string {
  // Quoted text belongs to a word.
  const words = command.match(/\n|(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? [];
  return fill(flagsWithValues(words), width - CONTINUED.length).join(`${CONTINUED}\n`);
}

/** A usage wrapped to a width. Text in brackets stays together. */
function wrapUsage(usage: string, width: number): string {
  const groups = usage.match(/\[[^\]]*\]|\S+/g) ?? [];
  return fill(
    groups.map((group) => group.split(' ')),
    width,
  ).join('\n');
}

function flagsWithValues(words: readonly string[]): Group[] {
  const groups: Group[] = [];
  for (const word of words) {
    const last = groups.at(-1) ?? [];
    const isValue = last.length === 1 && /^--?\w[\w-]*$/.test(last[0]!) && !/^(-|\n)/.test(word);
    if (isValue) groups.splice(-1, 1, [...last, word]);
    else groups.push([word]);
  }
  return groups;
}

/** Lines of groups, all but the first indented. A word that is a line break begins a new one. */
function fill(groups: readonly Group[], width: number): string[] {
  const lines = [''];
  const room = width - INDENTATION.length;
  const parts = groups.flatMap((group) => (group.join(' ').length <= room ? [group.join(' ')] : group));
  for (const part of parts) {
    const line = lines.at(-1)!;
    const isEmpty = line.trim() === '';
    const longer = isEmpty ? `${line}${part}` : `${line} ${part}`;
    if (part === '\n') lines.push(INDENTATION);
    else if (isEmpty || longer.length <= width) lines.splice(-1, 1, longer);
    else lines.push(`${INDENTATION}${part}`);
  }
  return lines.flatMap((line) => line.replaceAll('\n', `\n${INDENTATION}`).split('\n'));
}

/** The group of the flags of all commands. */
const GLOBAL = 'GLOBAL';

/** The help of a command in oclif's form, within the width, with examples that can be pasted. */
class OwnCommandHelp extends CommandHelp {
  constructor(...options: ConstructorParameters<typeof CommandHelp>) {
    super(...options);
    this.render = renderTemplates(this.render);
  }

  override renderList(...list: Parameters<Columns['renderList']>): string {
    return new Columns(this.config, this.opts).renderList(...list);
  }

  protected override usage(): string {
    const { id, usage = this.defaultUsage() } = this.command;
    return [usage]
      .flat()
      .map((line) => `$ ${this.config.bin} ${id} ${line.replace('<%= command.id %>', '').trim()}`)
      .map((line) => wrapUsage(this.render(line), this.opts.maxWidth - this.indentSpacing))
      .join('\n');
  }

  protected override examples(examples: Parameters<CommandHelp['examples']>[0]): string | undefined {
    const all = [examples ?? []].flat();
    // Examples of other plugins can have another form.
    if (all.length === 0 || all.some((example) => typeof example === 'string')) return super.examples(examples);
    return (all as { description: string; command: string }[]).map((example) => this.example(example)).join('\n\n');
  }

  /** Without the summary, which is the first line of the page, and the groups, which come last. */
  protected override description(): string | undefined {
    const { description = '', summary } = this.command;
    const text = summary === undefined ? description.split('\n').slice(1).join('\n') : description;
    return this.wrap(text.trim()) || undefined;
  }

  private example({ description, command }: { description: string; command: string }): string {
    const [spacing, line] = [this.indentSpacing * 2, this.render(command)];
    const prompt = line.startsWith(`${this.config.bin} `) ? '$ ' : '';
    const text = wrapCommand(`${prompt}${line}`, this.opts.maxWidth - spacing);
    return `${this.wrap(description, spacing)}\n${this.indent(text)}`;
  }

  protected override groupFlags(
    flags: Parameters<CommandHelp['groupFlags']>[0],
  ): ReturnType<CommandHelp['groupFlags']> {
    const order = Object.values(this.command.flags).map(({ helpGroup }) => helpGroup);
    const placeOf = ({ helpGroup }: { helpGroup?: string | undefined }) =>
      helpGroup === GLOBAL ? order.length : order.indexOf(helpGroup);
    return super.groupFlags(flags.toSorted((a, b) => placeOf(a) - placeOf(b)));
  }
}

/** The commands of the first screen, by heading. Those that are missing are left out. */
const FIRST_SCREEN: readonly (readonly [heading: string, ids: readonly string[]])[] = [
  ['START', ['guard', 'apikey:create', 'apikey:list', 'apikey:delete', 'serve']],
  ['MANAGE', ['apikey:show', 'apikey:update', 'apikey:rotate', 'apikey:revoke', 'explain', 'requests:list', 'login']],
  ['OPERATE', ['routes:check', 'doctor', 'backup', 'restore', 'edge', 'plugins']],
];

const MORE = `svc-api help --all lists every command.
svc-api help <command> or <topic> shows one, with flags and examples.`;

/** The forms of `apikey` that have no verb. */
const FORMS = ['--create', '--delete'];
const FORM_HELP = `svc-api apikey --create --help, and --delete --help: the forms without a verb.
svc-api apikey help exit-codes, svc-api apikey help environment: more topics.`;

type Rows = [name: string, summary: string][];

/** The help of svc-api itself; a host has its own. */
export default class OwnHelp extends Help {
  protected override CommandHelpClass = OwnCommandHelp;
  private lines: string[] = [];
  private argv: readonly string[] = [];

  constructor(config: Config, options?: Partial<HelpOptions>) {
    super(config, { ...widthOf(process.env), ...options });
    this.render = renderTemplates(this.render);
  }

  /** Leaves out aliases, and the long names of commands with short ones. */
  protected override get sortedCommands(): Command.Loadable[] {
    return super.sortedCommands.filter(
      ({ id, aliases }) => shortestId(this.config, id) === id && !aliases.includes(id),
    );
  }

  /** Collects the output, since oclif would ignore errors in writing it. */
  protected override log(...lines: string[]): void {
    this.lines.push(...lines);
  }

  /** @throws CliError OUTPUT_FAILED */
  override async showHelp(argv: string[]): Promise<void> {
    this.lines = [];
    this.argv = argv;
    await this.collectHelp(argv);
    try {
      if (this.opts.sendToStderr) await processTerminal.note(this.lines.join('\n'));
      else await processTerminal.out(this.lines.map((line) => `${line}\n`).join(''));
    } catch (error) {
      if (!(error instanceof ReaderGoneError)) throw error;
    }
  }

  private async collectHelp(argv: string[]): Promise<void> {
    const subject = argv.find((arg) => arg !== 'help' && !arg.startsWith('-')) ?? '';
    const topic = subject === 'version' ? VERSION_TOPIC : topicNamed(subject);
    if (topic) this.log(await topicText(topic, this.config));
    else await super.showHelp(argv);
  }

  override async showCommandHelp(asked: Command.Loadable): Promise<void> {
    const command = this.config.findCommand(shortestId(this.config, asked.id)) ?? asked;
    const children = this.sortedCommands.filter(({ id }) => id.startsWith(`${command.id}:`));
    const form = FORMS.find((flag) => this.argv.includes(flag));
    if (command.id === 'apikey' && form === undefined) return this.log(this.verbs(children));
    this.log(`${this.wrap(this.summary(command) ?? '', 0)}\n`);
    const shown = command.id === 'apikey' ? formOf(command, form!) : command;
    this.log(`${this.formatCommand(shown)}\n`);
    if (command.id !== 'apikey' && children.length > 0) this.log(`${this.grouped(children)}\n`);
  }

  /** The verbs of `apikey`. */
  private verbs(children: Command.Loadable[]): string {
    return [
      'Create, delete and manage API keys.',
      this.section('USAGE', '$ svc-api apikey <command> [flags]'),
      this.grouped(children),
      this.section('MORE', this.wrap(FORM_HELP)),
    ].join('\n\n');
  }

  /** @param asked can have the long name, for which oclif would show nothing. */
  protected override async showTopicHelp(asked: Topic): Promise<void> {
    await super.showTopicHelp(this.config.findTopic(asked.name.replace(/^apikey:/, '')) ?? asked);
  }

  protected override async showRootHelp(): Promise<void> {
    const all = this.sortedCommands;
    const sections = this.opts.all ? this.everySection(all) : this.firstSections(all);
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

  private firstSections(all: Command.Loadable[]): [string, Rows][] {
    const first = FIRST_SCREEN.map(([header, ids]): [string, Rows] => [
      header,
      this.rowsOf(ids.flatMap((id) => all.filter((command) => command.id === id))),
    ]);
    const ofPlugins = all.filter(({ pluginType, id }) => pluginType === 'user' && !id.startsWith('apikey:'));
    const others: [string, Rows][] = ofPlugins.length > 0 ? [['PLUGINS', this.rowsOf(ofPlugins)]] : [];
    return [...first.filter(([, rows]) => rows.length > 0), ...others, this.topicSection()];
  }

  private everySection(all: Command.Loadable[]): [string, Rows][] {
    const groups = groupsOf(all);
    const grouped = new Set(groups.flatMap(([, commands]) => commands));
    const others: Rows = [
      ...this.rowsOf(all.filter((command) => !grouped.has(command))),
      ['version', VERSION_TOPIC.summary],
    ];
    const sections = groups.map(([name, commands]): [string, Rows] => [name.toUpperCase(), this.rowsOf(commands)]);
    return [...sections, ['OTHER COMMANDS', others], this.topicSection()];
  }

  private topicSection(): [string, Rows] {
    return ['HELP TOPICS', Object.entries(HELP_TOPICS).map(([name, { summary }]): Rows[number] => [name, summary])];
  }

  private grouped(children: Command.Loadable[]): string {
    const isOfKeys = children.every(({ id }) => id.startsWith('apikey:'));
    const groups = isOfKeys ? groupsOf(children) : [];
    const sections = groups.map(([name, commands]): [string, Command.Loadable[]] => [name.toUpperCase(), commands]);
    const others = children.filter((child) => !sections.some(([, commands]) => commands.includes(child)));
    sections.push([groups.length > 0 ? 'OTHER COMMANDS' : 'COMMANDS', others]);
    const width = Math.max(...children.map(({ id }) => id.length));
    return sections
      .filter(([, commands]) => commands.length > 0)
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
    // A wrapped path could not be pasted.
    const documentation = `Documentation: ${join(packageFolder(), 'README.md')}`;
    return `${this.wrap(MORE)}\n${documentation}`;
  }

  override renderList(...list: Parameters<Columns['renderList']>): string {
    return new Columns(this.config, this.opts).renderList(...list);
  }
}

/** A command with the flags, usage and examples of one of its forms alone. */
function formOf(command: Command.Loadable, form: string): Command.Loadable {
  const other = FORMS.find((flag) => flag !== form)!
    .slice('--'.length)
    .toUpperCase();
  const { flags, usage = [], examples = [] } = command;
  return {
    ...command,
    flags: Object.fromEntries(Object.entries(flags).filter(([, { helpGroup }]) => helpGroup !== other)),
    usage: [usage].flat().filter((line) => line.includes(form)),
    examples: examples.filter((example) => JSON.stringify(example).includes(form)),
  };
}
