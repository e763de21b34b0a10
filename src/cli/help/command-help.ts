import { CommandHelp } from '@oclif/core/help';
import { Columns, renderTemplates } from './columns.ts';
import { wrapCommand, wrapUsage } from './command-line.ts';
import { VERB_LINES } from './verbs.ts';

/** The group of flags that all commands have. */
const GLOBAL = 'GLOBAL';

/** The help of a command as oclif writes it, within the width, with examples that can be pasted as they are shown. */
export class OwnCommandHelp extends CommandHelp {
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
    // Those of other plugins may have another form.
    if (all.length === 0 || all.some((example) => typeof example === 'string')) return super.examples(examples);
    return (all as { description: string; command: string }[]).map((example) => this.example(example)).join('\n\n');
  }

  /** Without the summary, which is the first line of the page, and the groups, which are its last part. */
  protected override description(): string | undefined {
    const { description = '', summary } = this.command;
    const text = summary === undefined ? description.split('\n').slice(1).join('\n') : description;
    return this.wrap(text.replace(`${VERB_LINES}\n\n`, '').trim()) || undefined;
  }

  private example({ description, command }: { description: string; command: string }): string {
    const [spacing, line] = [this.indentSpacing * 2, this.render(command)];
    const prompt = line.startsWith(`${this.config.bin} `) ? '$ ' : '';
    const text = wrapCommand(`${prompt}${line}`, this.opts.maxWidth - spacing);
    return `${this.wrap(description, spacing)}\n${this.indent(text)}`;
  }

  /** The groups in the order in which the command has them, the global one last. */
  protected override groupFlags(
    flags: Parameters<CommandHelp['groupFlags']>[0],
  ): ReturnType<CommandHelp['groupFlags']> {
    const order = Object.values(this.command.flags).map(({ helpGroup }) => helpGroup);
    const placeOf = ({ helpGroup }: { helpGroup?: string | undefined }) =>
      helpGroup === GLOBAL ? order.length : order.indexOf(helpGroup);
    return super.groupFlags(flags.toSorted((a, b) => placeOf(a) - placeOf(b)));
  }
}
