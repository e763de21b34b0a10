import type { CheckAnswer, CheckContext } from '../../feature.ts';
import { printable, UNIT_MS } from '../../keys/basics/index.ts';
import { describePattern } from './decide.ts';

/** The time after which `doctor` warns about an observing route. */
const OBSERVING_MS = 30 * UNIT_MS.d;
const PAGE_ENTRIES = 500;

/** Warns about routes that have observed for a long time. */
export async function checkObserving({ config, store, clock }: CheckContext): Promise<CheckAnswer[]> {
  if (!store) return [];
  const { auditLog } = store.repository;
  const observing = (config?.routes ?? []).filter(({ observe }) => observe).map(describePattern);
  const [recent, long] = [new Set(observing), new Set<string>()];
  for (let before: number | undefined; recent.size > 0;) {
    const place = before === undefined ? {} : { before };
    const until = clock() - OBSERVING_MS;
    const entries = await auditLog.find({ action: 'OBSERVE', until, order: 'newest', limit: PAGE_ENTRIES, ...place });
    for (const { after } of entries) if (recent.delete(String(after?.['route']))) long.add(String(after!['route']));
    if (entries.length < PAGE_ENTRIES) break;
    before = entries.at(-1)!.number;
  }
  return [...long].map((route) => ({
    status: 'warning',
    message: `The route ${printable(route, 300)} has observed for more than 30 days: it allows requests that it would refuse.`,
    remedy: 'See "svc-api apikey routes check --observed", grant what is missing, and remove "observe".',
  }));
}
