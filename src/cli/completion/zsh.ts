import { VALUES } from './values.ts';

/** The functions that offer the values of these flags. A comma, and the colon behind a resource, start a new value. */
const FUNCTIONS = `
_svc-api_roles() {
  compset -P '*,'
  compadd "$@" - ${VALUES.roles.join(' ')}
}

_svc-api_permissions() {
  compset -P '*,'
  if compset -P '*:'; then
    compadd "$@" - ${VALUES.actions.join(' ')}
  else
    compadd -S : "$@" - ${VALUES.resources.join(' ')}
  fi
}

_svc-api_statuses() {
  compadd "$@" - ${VALUES.statuses.join(' ')}
}
`;

const FUNCTION_OF = {
  roles: '_svc-api_roles',
  permissions: '_svc-api_permissions',
  status: '_svc-api_statuses',
} as const;

/** The plugin's script for zsh, with the values of flags where it offers files. */
export function completedZsh(script: string): string {
  if (script.includes(FUNCTIONS)) return script;
  const [head, ...lines] = script.split('\n').map(completedLine);
  return [head, FUNCTIONS, ...lines].join('\n');
}

/** A line of a flag ends so: `--roles"[Its description.]:file:_files" \`. */
function completedLine(line: string): string {
  const flag = /^(?:"\*")?--(roles|permissions|status)"\[/.exec(line)?.[1] as keyof typeof FUNCTION_OF | undefined;
  return flag ? line.replace(/:file:_files" \\$/, `:${flag}:${FUNCTION_OF[flag]}" \\`) : line;
}
