import { VALUES } from './values.ts';

/** Functions that complete the values of flags. A comma starts the next item, a colon the action of a resource. */
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

/** The plugin's zsh script, completing the values of flags where it would complete files. */
export function completedZsh(script: string): string {
  if (script.includes(FUNCTIONS)) return script;
  const [head, ...lines] = script.split('\n').map(completedLine);
  return [head, FUNCTIONS, ...lines].join('\n');
}

/** The plugin writes a flag as `--roles"[Its description.]:file:_files" \`. */
function completedLine(line: string): string {
  const flag = /^(?:"\*")?--(roles|permissions|status)"\[/.exec(line)?.[1] as keyof typeof FUNCTION_OF | undefined;
  return flag ? line.replace(/:file:_files" \\$/, `:${flag}:${FUNCTION_OF[flag]}" \\`) : line;
}
