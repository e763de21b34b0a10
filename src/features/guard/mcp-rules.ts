import type { Charge } from '../../keys/authorization/index.ts';
import type { Permission, PermissionSet } from '../../keys/permissions/index.ts';
import { chargeOf, checkAllow, type Match, type McpPatterns, type Needed } from '../routes/index.ts';

/** A part of a server: a tool, a resource or a prompt, by its name or URI. */
export interface Part {
  readonly kind: keyof McpPatterns;
  readonly name: string;
}

/** The permissions that a key lacks for a part, or that no permission would help. */
type Lacking =
  | { readonly missing: readonly Permission[] }
  | { readonly used: readonly Permission[]; readonly charges: readonly Charge[] };

/** The permissions that the parts of a route require, and the cost of a call. */
interface Terms {
  readonly allow: Needed;
  readonly charge: Charge;
}

/** A pattern of a route. */
interface Rule {
  readonly terms: Terms;
  readonly pattern: string;
  /** Length of its literal text: the longest pattern wins, and one without `*` comes before all others. */
  readonly weight: number;
  isLike(name: string): boolean;
  /** The same for one interpretation of a URI, by the interpretations of the pattern. */
  isLikeReading(uri: string): boolean;
}

const KINDS = ['tools', 'resources', 'prompts'] as const;

/** Maximum number of parts and tasks in a request. */
export const MAX_PARTS = 1000;
/** Maximum length of a name or URI. */
const MAX_NAME = 2048;
/**
 * The most characters that are compared for one request: of each name, and some besides, with each pattern. To read a
 * URI takes as long as several patterns.
 */
const [MAX_COMPARED, EACH_NAME, READING] = [5_000_000, 100, 20];

/** A path that a server could resolve differently, or characters that could cut it short. */
const AMBIGUOUS = /(?:^|[/\\:])(?:\.|%2e){1,2}(?:[/\\?#]|$)|\p{Cc}/iu;

/** A URI as servers read it: as it is, and as the URL class has it; without percent-encoding and empty segments. */
function readingsOf(uri: string): string[] {
  const read = [uri, URL.parse(uri)?.href ?? uri].map((text) =>
    text
      .replaceAll(/(?:%[\da-f]{2})+/gi, (bytes) => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString())
      .replaceAll(/[/\\]+/g, '/'),
  );
  return [...new Set(read)];
}

/** Which parts of an MCP server need what, by the routes that are for it. */
export class McpRules {
  readonly #rules: Readonly<Record<Part['kind'], readonly Rule[]>>;

  constructor({ route, also = [] }: Match) {
    const routes = [route, ...also.map((match) => match.route)].map((each) => ({
      patterns: each.mcp!,
      terms: { allow: each.allow as Needed, charge: chargeOf(each) },
    }));
    const rulesFor = (kind: Part['kind']) =>
      routes.flatMap(({ patterns, terms }) => patterns[kind].map((pattern) => ruleOf(pattern, terms)));
    this.#rules = { tools: rulesFor('tools'), resources: rulesFor('resources'), prompts: rulesFor('prompts') };
  }

  /** Refuses too many or too long parts, since checking them would hold up others. Undefined if they are fine. */
  tooMuch(parts: readonly { readonly kind: Part['kind'] | 'tasks'; readonly name: string }[]): string | undefined {
    if (parts.some(({ name }) => name.length > MAX_NAME))
      return `The name or URI of a tool, resource, prompt or task has more than ${MAX_NAME} characters.`;
    if (parts.length > MAX_PARTS)
      return `The messages name more than ${MAX_PARTS} tools, resources, prompts and tasks. Send them in several requests.`;
    const compared = parts.reduce(
      (sum, { kind, name }) =>
        sum + ((kind === 'tasks' ? 0 : this.#rules[kind].length) + READING) * (name.length + EACH_NAME),
      0,
    );
    return parts.length > 1 && compared > MAX_COMPARED
      ? 'The messages name too many tools, resources and prompts for the patterns of their routes. Send fewer at a time.'
      : undefined;
  }

  /** The permissions that a key lacks for a part; undefined if no key can use it. */
  lacking(part: Part, access: PermissionSet): Lacking | undefined {
    const terms = [...new Set(this.#rulesFor(part).map((rule) => rule.terms))];
    if (terms.length === 0) return undefined;
    const checked = terms.map(({ allow }) => checkAllow(allow, access));
    const missing = checked.flatMap((each) => (each.outcome === 'forbidden' ? each.missing : []));
    if (missing.length > 0) return { missing: [...new Set(missing)] };
    const used = checked.flatMap((each) => (each.outcome === 'allowed' ? each.used : []));
    return { used, charges: terms.map(({ charge }) => charge) };
  }

  /**
   * The rules for a part; none if it is refused for every key. A URI is checked in each way that servers read it, and
   * without query and fragment, which file servers ignore.
   */
  #rulesFor({ kind, name }: Part): readonly Rule[] {
    const rules = this.#rules[kind];
    const asItIs = mostSpecific(rules, (rule) => rule.isLike(name));
    const isExact = asItIs.some(({ pattern }) => pattern === name);
    if (kind !== 'resources' || isExact || rules.every(({ pattern }) => pattern === '*')) return asItIs;
    const readings = readingsOf(name);
    if ([name, ...readings].some((text) => AMBIGUOUS.test(text)))
      return rules.some(({ pattern }) => pattern === '*') ? rules : [];
    const rulesOf = (text: string) => mostSpecific(rules, (rule) => rule.isLikeReading(text));
    const found = [asItIs, ...readings.map(rulesOf)];
    if (found.some(({ length }) => length === 0)) return [];
    const shorter = readings.filter((text) => /[?#]/.test(text)).map((text) => rulesOf(text.replace(/[?#].*/s, '')));
    return [...new Set([...found, ...shorter].flat())];
  }

  allows(part: Part, access: PermissionSet): boolean {
    const lacking = this.lacking(part, access);
    return lacking !== undefined && 'used' in lacking;
  }

  /** Checks whether a key can use all parts, so that answers need no filter. */
  allowsAll(access: PermissionSet): boolean {
    return KINDS.every((kind) => {
      const rules = this.#rules[kind];
      const all = new Set(rules.map(({ terms }) => terms.allow));
      return (
        rules.some(({ pattern }) => pattern === '*') &&
        [...all].every((allow) => checkAllow(allow, access).outcome === 'allowed')
      );
    });
  }

  /** The permissions that a key has of those that any part needs. */
  held(access: PermissionSet): readonly Permission[] {
    const all = new Set(KINDS.flatMap((kind) => this.#rules[kind].map(({ terms }) => terms.allow)));
    const held = [...all].flatMap((allow) => {
      const checked = checkAllow(allow, access);
      return checked.outcome === 'allowed' ? checked.used : [];
    });
    return [...new Set(held)];
  }
}

function ruleOf(pattern: string, terms: Terms): Rule {
  const forms = readingsOf(pattern).map(likeness);
  return {
    terms,
    pattern,
    weight: pattern.includes('*') ? pattern.replaceAll('*', '').length : Number.MAX_SAFE_INTEGER,
    isLike: likeness(pattern),
    isLikeReading: (uri) => forms.some((isLike) => isLike(uri)),
  };
}

/** The matching rules with the longest pattern. */
function mostSpecific(rules: readonly Rule[], matches: (rule: Rule) => boolean): readonly Rule[] {
  let found: Rule[] = [];
  let most = 0;
  for (const rule of rules) {
    if (rule.weight < most || !matches(rule)) continue;
    if (rule.weight > most) found = [];
    most = rule.weight;
    found.push(rule);
  }
  return found;
}

/**
 * Compiles a pattern in which `*` matches any text. A test takes time linear in the length of the name.
 */
function likeness(pattern: string): (name: string) => boolean {
  const [first = '', ...others] = pattern.split('*');
  const last = others.pop();
  if (last === undefined) return (name) => name === pattern;
  return (name) => {
    if (!name.startsWith(first)) return false;
    let at = first.length;
    for (const piece of others) {
      const found = name.indexOf(piece, at);
      if (found === -1) return false;
      at = found + piece.length;
    }
    return name.length - last.length >= at && name.endsWith(last);
  };
}
