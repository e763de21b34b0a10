import {
  formatList,
  formatTime,
  KeysError,
  MAX_PAGE_SIZE,
  printable,
  timeAndDistance,
} from '../../keys/basics/index.ts';
import type { ManyChangeRequest } from '../../keys/changes/index.ts';
import type { KeyFilters } from '../../keys/lists/index.ts';
import type { Client } from '../../keys/operations/index.ts';
import { formatCursor, type KeyName, type ManyPlan } from '../../keys/service/index.ts';
import { firstOf, formatCount } from '../output.ts';

/** The most keys that a plan names in text. JSON has all of them. */
const SHOWN = 100;
/** The most keys named that refuse a change. */
const NAMED = 5;

/**
 * The keys selected by filters, to change all of them.
 * @throws KeysError INPUT_INVALID if there are more than one change can include
 */
export async function selectAll(keys: Client, filters: KeyFilters): Promise<KeyName[]> {
  const found: KeyName[] = [];
  for (let after: string | undefined; ;) {
    const page = await keys.apiKeys({ query: { ...filters, first: MAX_PAGE_SIZE, after } });
    found.push(...page.keys.map(({ apiKey }) => apiKey));
    if (found.length > keys.mostAtOnce || (page.hasNextPage && found.length === keys.mostAtOnce))
      throw new KeysError(
        'INPUT_INVALID',
        `More than ${keys.mostAtOnce} keys match, which is the most that can be changed at once. Select fewer.`,
      );
    if (!page.hasNextPage) return found;
    after = formatCursor(page.keys.at(-1)!.apiKey);
  }
}

/** The effects of a change of those keys. @throws KeysError with the first refusal, in which case none is changed */
export async function planAll(keys: Client, found: readonly KeyName[], request: ManyChangeRequest): Promise<ManyPlan> {
  const plan = await keys.apiKeyChangePlan({ ids: found.map(({ id }) => id), request });
  const [first] = plan.refused;
  if (!first) return plan;
  const names = plan.refused.map(({ key }) => `"${printable(key.name, 100)}"`);
  const which = formatList(firstOf(names, NAMED));
  const { code, reason } = first.refusal;
  throw new KeysError(code, `No key was changed, because ${which} cannot be changed: ${reason}`);
}

/** A plan as JSON: a closed list of fields. */
export function planJson({ changing, unchanged, keys: total, lastUsedAt }: ManyPlan, dryRun: boolean): object {
  const keys = changing.map(({ id, name }) => ({ id, name }));
  return { dryRun, keys, unchanged: unchanged.length, total, lastUsedAt: formatTime(lastUsedAt) };
}

/** A plan as text. @param verb such as `disable` */
export function planText({ changing, unchanged, keys: total, lastUsedAt }: ManyPlan, verb: string): string {
  if (changing.length === 0)
    return unchanged.length > 0
      ? 'There is nothing to do: all matching keys are already in that state.'
      : 'No API keys match.';
  const rest = changing.length - SHOWN;
  const children = total - changing.length;
  const counts = [
    `${formatCount(changing.length, 'API key', 'API keys')} to ${verb}`,
    ...(children > 0 ? [`with ${formatCount(children, 'child key', 'child keys')}`] : []),
    lastUsedAt === null ? 'never used' : `last used ${timeAndDistance(lastUsedAt)}`,
  ];
  return [
    ...changing.slice(0, SHOWN).map(({ name }) => `${verb === 'delete' ? '-' : '~'} ${verb} "${printable(name, 100)}"`),
    ...(rest > 0 ? [`… and ${rest} more`] : []),
    `Plan: ${counts.join(', ')}.${unchanged.length > 0 ? ` ${unchanged.length} more are already in that state.` : ''}`,
  ].join('\n');
}
