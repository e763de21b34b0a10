import { VALUES } from './values.ts';

/**
 * The plugin's function completes no values, and flags only right after the command. Words are read from the line
 * itself, because `COMP_WORDS` splits them at `:` and `=`; readline replaces only what follows the last of these.
 */
const ADDITION = `
_svc-api_complete()
{
  local IFS=$' \\t\\n' line="\${COMP_LINE:0:COMP_POINT}" before words suffix typed count
  local word="\${line##*[[:space:]]}"
  read -ra before <<< "\${line%"$word"}"
  local flag="\${before[\${#before[@]}-1]}" value="$word"
  [[ "$word" == --*=* ]] && flag="\${word%%=*}" value="\${word#*=}"
  local item="\${value##*,}"

  case "$flag" in
    --roles) words="${VALUES.roles.join(' ')}" ;;
    --permission | --permissions)
      if [[ "$item" == *:* ]]; then
        item="\${item#*:}"
        words="${VALUES.actions.join(' ')}"
      else
        suffix=":"
        words="${VALUES.resources.join(' ')}"
        compopt -o nospace 2>/dev/null
      fi
      ;;
    --status)
      item="$value"
      words="${VALUES.statuses.join(' ')}"
      ;;
    --activate)
      item="$value"
      words="now on-first-use"
      ;;
    --database | --file | --secrets-dir) compopt -o default 2>/dev/null ;;
  esac
  if [[ -n "$words" ]]; then
    typed="\${word%"$item"}"
    typed="\${typed##*["$COMP_WORDBREAKS"]}"
    COMPREPLY=( $(compgen -P "$typed" -S "$suffix" -W "$words" -- "$item") )
    return
  fi

  # The plugin's function expects the command and the word at the cursor, with nothing in between.
  for (( count = 1; count < COMP_CWORD; count++ )); do
    [[ "\${COMP_WORDS[count]}" == -* ]] && break
  done
  COMPREPLY=()
  if [[ "$word" == -* || "$count" == "$COMP_CWORD" ]]; then
    COMP_WORDS=( "\${COMP_WORDS[@]:0:count}" "$word" ) COMP_CWORD=$count
    _svc-api_autocomplete
  fi
}

complete -F _svc-api_complete svc-api
`;

/** The plugin's bash script, extended to complete the values of flags, and flags after other flags. */
export function completedBash(script: string): string {
  return script.endsWith(ADDITION) ? script : script + ADDITION;
}
