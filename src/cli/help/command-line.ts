const INDENTATION = '  ';
const CONTINUED = ' \\';

/** Words that stay on one line where there is room. */
type Group = readonly string[];

/**
 * A shell command in lines of that width, each but the last with a backslash at its end, so that it can be pasted.
 * Words stay whole, and a flag keeps its value. Breaks that the command has are kept.
 */
export function wrapCommand(command: string, width: number): string {
  // Text in quotes belongs to a word.
  const words = command.match(/\n|(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? [];
  return fill(flagsWithValues(words), width - CONTINUED.length).join(`${CONTINUED}\n`);
}

/** A usage in lines of that width. What is in brackets stays together. */
export function wrapUsage(usage: string, width: number): string {
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
