import type { Completed } from './completed.ts';

/** The script for fish, 3.1 or later. */
export function fishScript({ bin, ask, prefix, topics }: Completed): string {
  const condition = topics
    ? `
# Whether the line is about one of the commands that are completed here, or has no command yet.
function ${prefix}_is_ours
    set -l words (commandline -opc | string match -v -r '^\\w+=')
    test (count $words) = 1; or string match -q -r -- '^(${topics.join('|')})(:|$)' "$words[2]"
end
`
    : '';
  return `# Completion of ${bin} for fish
${condition}
function ${prefix}
    set -l reply (COMP_LINE=(commandline -cp | string collect) ${ask} 2>/dev/null </dev/null)
    switch "$reply[1]"
        case files folders
            set -l token (commandline -ct)
            set -l flag (string match -r '^--[a-z-]+=' -- $token)
            set -l typed (string replace -r '^--[a-z-]+=' '' -- $token)
            for path in (complete -C "'' $typed")
                test $reply[1] = files; or string match -q -r '/(\\t|$)' -- $path; and echo "$flag$path"
            end
        case words open
            string join -- \\n $reply[2..-1]
    end
end

complete -c ${bin} ${topics ? `-n ${prefix}_is_ours ` : ''}-f -a '(${prefix})'
`;
}
