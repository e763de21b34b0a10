import assert from 'node:assert/strict';
import type { JSHandle, Locator, Page } from 'playwright-core';

/** More stops than any page has. */
const MAX_STOPS = 200;

/** Where the focus is: as people would say it, and what keeps them from seeing it. */
interface Stop {
  readonly name: string;
  readonly problem?: string;
}

/** Compares how an element looks, as far as a focus may change it, with how it looked before it had the focus. */
const STOPS = `(() => {
  const look = (element) => {
    const style = getComputedStyle(element);
    const isOutlined = style.outlineStyle !== 'none' && style.outlineWidth !== '0px';
    const outline = isOutlined ? style.outline : '';
    return [outline, style.boxShadow, style.borderColor, style.backgroundColor, style.textDecoration].join();
  };
  const looks = new Map();
  let before;
  const leave = () => {
    before = document.activeElement;
    for (const element of document.querySelectorAll('*'))
      if (element !== before && !looks.has(element)) looks.set(element, look(element));
  };
  const problemOf = (element) => {
    // A field of several parts, such as a date, has the focus several times.
    if (element !== before && looks.get(element) === look(element)) return 'looks no different with the focus';
    // A link may go over several lines.
    const { left, top, width, height } = element.getClientRects()[0] ?? element.getBoundingClientRect();
    const seen = document.elementFromPoint(left + width / 2, top + height / 2);
    return element.contains(seen) ? undefined : 'is hidden or out of sight';
  };
  const stop = () => {
    const element = document.activeElement;
    if (element === null || element === document.body || element === document.documentElement) return undefined;
    const label = element.labels?.[0] ?? element;
    const name = (element.getAttribute('aria-label') ?? label.innerText).trim().replaceAll(/\\s+/g, ' ');
    return { name: element.localName + ' "' + name + '"', problem: problemOf(element) };
  };
  return { leave, stop };
})()`;

type Stops = JSHandle<{ leave(): void; stop(): Stop | undefined }>;

/** Somebody who uses a page by its keyboard alone, and sees at each stop where the focus is. */
export class Keyboard {
  readonly #page: Page;
  #stops: Stops | undefined;

  constructor(page: Page) {
    this.#page = page;
  }

  /**
   * Goes to the next stop, and fails if nobody could see that.
   * @returns the element and what it is called, such as `button "Agree"`; undefined at the end of the page
   */
  async tab(key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<string | undefined> {
    const stops = await this.#leave();
    await this.#page.keyboard.press(key);
    const stop = await stops.evaluate((stops) => stops.stop());
    assert.equal(stop?.problem, undefined, `${stop?.name} ${stop?.problem}`);
    return stop?.name;
  }

  /** Notes how the page looks before the focus moves: that which was noted already, unless the page is another one. */
  async #leave(): Promise<Stops> {
    try {
      await this.#stops?.evaluate((stops) => stops.leave());
    } catch {
      this.#stops = undefined;
    }
    if (this.#stops) return this.#stops;
    this.#stops = await this.#page.evaluateHandle<{ leave(): void; stop(): Stop | undefined }>(STOPS);
    await this.#stops.evaluate((stops) => stops.leave());
    return this.#stops;
  }

  /** Presses Tab until an element has the focus. */
  async tabTo(target: Locator): Promise<void> {
    const isThere = () =>
      target.evaluate((element: { matches(selector: string): boolean }) => element.matches(':focus'));
    for (let stop = 0; stop < MAX_STOPS; stop++) {
      if (await isThere()) return;
      await this.tab();
    }
    assert.fail(`Tab does not lead to ${target.toString()}`);
  }

  /** All stops of a page, from its beginning to its end. */
  async stops(): Promise<string[]> {
    const stops: string[] = [];
    for (let stop = await this.tab(); stop !== undefined && stops.length < MAX_STOPS; stop = await this.tab())
      stops.push(stop);
    return stops;
  }

  /** Presses a key, such as `Space` or `Enter`, where the focus is. */
  press(key: string): Promise<void> {
    return this.#page.keyboard.press(key);
  }

  /** Types a text where the focus is. */
  type(text: string): Promise<void> {
    return this.#page.keyboard.type(text);
  }
}
