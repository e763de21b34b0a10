import { isThenable } from './results.ts';
import type { OutputType, Selection } from './selection.ts';

/** Has promises that nobody waits for, or only later, not end the process when they reject. */
export function expectRejections(values: readonly unknown[]): void {
  for (const value of values)
    try {
      if (isThenable(value)) value.then(undefined, () => {});
    } catch {
      // What cannot even be asked is no promise.
    }
}

/**
 * The same for what is completed later, or never: also the promises within that are selected. No getter is called, nor
 * any resolver, nor what is no `Promise` itself: what these begin to do has not begun yet.
 */
export function expectRejectionsIn(values: readonly unknown[], type: OutputType, selection: Selection): void {
  for (const value of values)
    try {
      if (value instanceof Promise)
        value.then(
          (result) => expectRejectionsIn([result], type, selection),
          () => {},
        );
      else if (type.kind === 'list' && Array.isArray(value)) expectRejectionsIn(value, type.item, selection);
      else if (type.kind === 'object' && typeof value === 'object' && value !== null)
        for (const field of selection.fieldsOf(type.type)) {
          const property = Object.getOwnPropertyDescriptor(value, field.name);
          if (typeof property?.value === 'object') expectRejectionsIn([property.value], field.type, field.selection);
        }
      // Its type is not known yet, nor which fields are selected from it.
      else if (type.kind === 'abstract' && typeof value === 'object' && value !== null)
        for (const { value: property } of Object.values(Object.getOwnPropertyDescriptors(value)))
          if (property instanceof Promise) expectRejections([property]);
    } catch {
      // What cannot even be asked is no promise.
    }
}
