import type { Command } from '@oclif/core/command';
import { VALUES } from './values.ts';

const HEAD = `# Completion of svc-api for fish: save it as ~/.config/fish/completions/svc-api.fish

# Whether the words before the first flag are this command.
function __svc_api_command
    set -l tokens (commandline -opc)
    set -e tokens[1]
    set -l words
    for token in $tokens
        string match -q -- '-*' $token; and break
        set -a words $token
    end
    test "$words" = "$argv"
end

# These values, each prefixed with the items before the last comma.
function __svc_api_list
    set -l before (commandline -ct | string replace -r '^--[a-z-]+=' '' | string replace -r '[^,]*$' '')
    for value in $argv
        echo "$before$value"
    end
end

function __svc_api_roles
    __svc_api_list ${VALUES.roles.join(' ')}
end

# fish expands the braces to all pairs.
function __svc_api_permissions
    __svc_api_list {${VALUES.resources.join(',')}}:{${VALUES.actions.join(',')}}
end

complete -c svc-api -f
complete -c svc-api -s h -l help -d 'Show help'
`;

/** How the values of flags are completed. A flag that is not listed takes any text. */
const VALUES_OF: Readonly<Record<string, string>> = {
  roles: "-x -a '(__svc_api_roles)'",
  permission: "-x -a '(__svc_api_permissions)'",
  permissions: "-x -a '(__svc_api_permissions)'",
  status: `-x -a '${VALUES.statuses.join(' ')}'`,
  activate: "-x -a 'now on-first-use'",
  database: '-r -F',
  file: '-r -F',
  'secrets-dir': '-r -F',
};

/** The completion script for fish, which the plugin does not support. */
export function fishScript(commands: readonly Command.Loadable[]): string {
  const shown = commands.filter(({ hidden }) => !hidden).toSorted((one, other) => one.id.localeCompare(other.id));
  return HEAD + shown.map((command) => `\n${linesOf(command).join('\n')}\n`).join('');
}

function linesOf({ id, summary, description, flags }: Command.Loadable): string[] {
  const words = id.split(':');
  const name = words.pop()!;
  return [
    `${completeAfter(words)} -a ${name} ${descriptionOf(summary ?? description)}`,
    ...Object.entries(flags)
      .filter(([, { hidden }]) => !hidden)
      .map(([flag, { char, type, summary, description }]) =>
        [
          completeAfter([...words, name]),
          ...(char ? [`-s ${char}`] : []),
          `-l ${flag}`,
          ...(type === 'option' ? [VALUES_OF[flag] ?? '-x'] : []),
          descriptionOf(summary ?? description),
        ].join(' '),
      ),
  ];
}

function completeAfter(command: readonly string[]): string {
  return `complete -c svc-api -n '${['__svc_api_command', ...command].join(' ')}'`;
}

function descriptionOf(text = ''): string {
  const [line = ''] = text.replaceAll('<%= config.bin %>', 'svc-api').split('\n', 1);
  return `-d '${line.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
}
