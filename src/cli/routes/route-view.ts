import { printable } from '../../keys/text.ts';
import type { Match } from '../../routes/route-tree.ts';
import type { Allow } from '../../routes/route.ts';

/** A route as JSON. */
export interface RouteJson {
  /** From 1. */
  number: number;
  line: number | null;
  methods: readonly string[] | null;
  host: string;
  path: string;
  /** As the file has it. */
  allow: string | readonly string[] | { any: readonly string[] };
  preflight: 'open' | null;
}

export function routeJson({ route, index }: Match): RouteJson {
  const { line = null, methods = null, host, path, allow, preflightOpen } = route;
  return {
    number: index + 1,
    line,
    methods,
    host,
    path,
    allow: allowJson(allow),
    preflight: preflightOpen ? 'open' : null,
  };
}

function allowJson(allow: Allow): RouteJson['allow'] {
  if (!('permissions' in allow)) return allow.kind;
  return allow.kind === 'any' ? { any: allow.permissions } : allow.permissions;
}

/** What there is to say about a route, after where it is: `/etc/svc-api.yaml:12: …`. */
export function atRoute(file: string, { route }: Match, text: string): string {
  return `${printable(file, 200)}:${route.line ?? 1}: ${text}`;
}
