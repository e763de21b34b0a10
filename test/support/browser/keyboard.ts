import assert from 'node:assert/strict';
import type { ElementHandle, JSHandle, Locator, Page } from 'playwright-core';

/** More stops than any page has. */
const MAX_STOPS = 200;

/** The focused element: its accessible name, what hides its focus, and whether it is the expected element. */
interface Stop {
  readonly name?: string;
  readonly problem?: string;
  readonly isThere: boolean;
}

/** Compares an element's style with its style before it had the focus. */
const STOPS = `(() => {
  const look = (element) => {
    const style = getComputedStyle(element);
    const isOutlined = style.outlineStyle !== 'none' && style.outlineWidth !== '0px';
    const outline = isOutlined ? style.outline : '';
    return [outline, style.boxShadow, style.borderColor, style.backgroundColor, style.textDecoration].join();
  };
  const looks = new Map();
  let before;
  const note = () => {
    before = document.activeElement;
    for (const element of document.querySelectorAll('*'))
      if (element !== before && !looks.has(element)) looks.set(element, look(element));
  };
  const problemOf = (element) => {
    if (looks.get(element) === look(element)) return 'looks no different with the focus';
    // A link may go over several lines.
    const { left, top, width, height } = element.getClientRects()[0] ?? element.getBoundingClientRect();
    const seen = document.elementFromPoint(left + width / 2, top + height / 2);
    return element.contains(seen) ? undefined : 'is hidden or out of sight';
  };
  const nameOf = (element) => {
    const label = element.labels?.[0] ?? element;
    const name = (element.getAttribute('aria-label') ?? label.innerText).trim().replaceAll(/\\s+/g, ' ');
    return element.localName + ' "' + name + '"';
  };
  const stop = (target) => {
    const element = document.activeElement;
    const isNowhere = element === null || element === document.body || element === document.documentElement;
    // A field of several parts, such as a date, has the focus several times.
    const problem = isNowhere || element === before ? undefined : problemOf(element);
    note();
    return { name: isNowhere ? undefined : nameOf(element), problem, isThere: element === target };
  };
  note();
  return { stop };
})()`;

interface Stops {
  stop(target: unknown): Stop;
}

/** A keyboard user, who must see at each stop where the focus is. */
export class Keyboard {
  readonly #page: Page;
  #stops: JSHandle<Stops> | undefined;

  constructor(page: Page) {
    this.#page = page;
  }

  /**
   * Goes to the next stop, and fails if the focus is not visible there.
   * @returns the element's role and name, such as `button "Approve"`; undefined at the end of the page
   */
  async tab(key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<string | undefined> {
    await this.#here(null);
    return (await this.#tab(key, null)).name;
  }

  /** Presses Tab until an element has the focus. */
  async tabTo(target: Locator): Promise<void> {
    const element = await target.elementHandle();
    let { isThere } = await this.#here(element);
    for (let stop = 0; !isThere; stop++) {
      assert.ok(stop < MAX_STOPS, `Tab does not lead to ${target.toString()}`);
      ({ isThere } = await this.#tab('Tab', element));
    }
    await element?.dispose();
  }

  /** All stops of a page, from its beginning to its end. */
  async stops(): Promise<string[]> {
    const stops: string[] = [];
    for (let stop = await this.tab(); stop !== undefined && stops.length < MAX_STOPS; stop = await this.tab())
      stops.push(stop);
    return stops;
  }

  /** Presses a key, such as `Space` or `Enter`, on the focused element. */
  press(key: string): Promise<void> {
    return this.#page.keyboard.press(key);
  }

  /** Types a text into the focused element. */
  type(text: string): Promise<void> {
    return this.#page.keyboard.type(text);
  }

  async #tab(key: string, target: ElementHandle | null): Promise<Stop> {
    await this.#page.keyboard.press(key);
    const stop = await this.#stops!.evaluate((stops, target) => stops.stop(target), target);
    assert.equal(stop.problem, undefined, `${stop.name} ${stop.problem}`);
    return stop;
  }

  /** The current focus. Records the style of all other elements once per page. */
  async #here(target: ElementHandle | null): Promise<Stop> {
    try {
      if (this.#stops) return await this.#stops.evaluate((stops, target) => stops.stop(target), target);
    } catch {
      // The page was closed or left.
    }
    this.#stops = await this.#page.evaluateHandle<Stops>(STOPS);
    return this.#stops.evaluate((stops, target) => stops.stop(target), target);
  }
}
