import type { Completed } from './completed.ts';

/** The script for zsh: to be sourced, or a file of its function path. */
export function zshScript(completed: Completed): string {
  const { bin, ask, prefix } = completed;
  return `#compdef ${bin}
# Completion of ${bin} for zsh
${previousOf(completed)}
${prefix}() {
${othersOf(completed)}  local -a reply texts shown suffix
  local line word description typed="\${(j: :)words[1,CURRENT-1]} $QIPREFIX$IPREFIX$PREFIX"
  reply=("\${(@f)$(COMP_BUFFER="$LBUFFER" COMP_LINE="$typed" ${ask} 2>/dev/null </dev/null)}")
  case $reply[1] in
    files | folders)
      [[ $PREFIX == --*=* ]] && compset -P '*='
      [[ $reply[1] == files ]] && _files || _files -/
      return
      ;;
    open) suffix=(-S '') ;;
  esac
  for line in $reply[2,-1]; do
    word=\${line%%$'\\t'*} description=
    [[ $line == *$'\\t'* ]] && description="  -- \${line#*$'\\t'}"
    texts+=("$word")
    shown+=("$word$description")
  done
  (( $#texts )) && compadd "\${suffix[@]}" -l -d shown -a texts
}

if [[ $funcstack[1] == _${bin} ]]; then
  ${prefix} "$@"
else
  compdef ${prefix} ${bin}
fi
`;
}

function previousOf({ bin, prefix, topics }: Completed): string {
  if (!topics) return '';
  return `
# What completes the other commands of ${bin}.
[[ \${_comps[${bin}]} == ${prefix} ]] || ${prefix}_others=\${_comps[${bin}]}
`;
}

function othersOf({ prefix, topics }: Completed): string {
  if (!topics) return '';
  return `  if [[ -n $${prefix}_others && ( CURRENT -eq 2 || $words[2] != (${topics.join('|')})(|:*) ) ]]; then
    $${prefix}_others "$@"
    return
  fi
`;
}
