/** An item in the hosts' lists. */
export interface Item {
  id: string;
  name: string;
  size: number;
  ok: boolean;
}

/** One more than any list requests; the mutation changes that one. */
const ITEMS = Array.from({ length: 601 }, (_, index): Item => ({
  id: `item-${index}`,
  name: `Item number ${index}`,
  size: index * 1024,
  ok: index % 3 !== 0,
}));
const byId = new Map(ITEMS.map((item) => [item.id, item]));

export const RESIZED_ID = ITEMS.at(-1)!.id;

export function firstItems(first: number): Item[] {
  return ITEMS.slice(0, first);
}

export function resizeItem(id: string, size: number): Item {
  const item = byId.get(id)!;
  item.size = size;
  return item;
}

/** The response of a server without GraphQL. */
export const CONSTANT = { ok: true };
