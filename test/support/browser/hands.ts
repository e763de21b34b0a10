import type { Locator, Page } from 'playwright-core';
import { Keyboard } from './keyboard.ts';
import type { Look } from './visit.ts';

/** How somebody uses a page. */
export interface Hands {
  /** Follows a link, or presses a button. */
  press(target: Locator): Promise<void>;
  /** Writes a text into a field, in place of what is there. */
  fill(field: Locator, text: string): Promise<void>;
  /** Ticks a box. */
  tick(box: Locator): Promise<void>;
  /** Chooses one of several buttons, of which another one is chosen. */
  select(radio: Locator): Promise<void>;
  /** Chooses from a list by what it shows. */
  choose(list: Locator, option: string): Promise<void>;
  /** Takes a way past many stops, where it is needed. */
  skip(link: Locator): Promise<void>;
}

function byMouse(): Hands {
  return {
    press: (target) => target.click(),
    fill: (field, text) => field.fill(text),
    tick: (box) => box.check(),
    select: (radio) => radio.check(),
    choose: async (list, label) => void (await list.selectOption({ label })),
    skip: async () => {},
  };
}

function byKeyboard(page: Page): Hands {
  const keyboard = new Keyboard(page);
  const press = async (target: Locator) => {
    await keyboard.tabTo(target);
    await keyboard.press('Enter');
  };
  return {
    press,
    skip: press,
    fill: async (field, text) => {
      await keyboard.tabTo(field);
      await keyboard.press('Control+A');
      await keyboard.press('Delete');
      await keyboard.type(text);
    },
    tick: async (box) => {
      await keyboard.tabTo(box);
      await keyboard.press('Space');
    },
    select: async (radio) => {
      // Tab leads to the one that is chosen, arrows from there to the others.
      await keyboard.tabTo(page.locator(`input[name="${await radio.getAttribute('name')}"]:checked`));
      while (!(await radio.isChecked())) await keyboard.press('ArrowDown');
    },
    choose: async (list, option) => {
      await keyboard.tabTo(list);
      await keyboard.type(option);
    },
  };
}

/** The ways in which pages are used, each in words: whatever can be done must be possible in all of them. */
export const WAYS: readonly [words: string, look: Look, handsOn: (page: Page) => Hands][] = [
  ['by the mouse', {}, byMouse],
  ['by the keyboard alone', {}, byKeyboard],
  ['on a telephone, in the dark, by its keys alone', { width: 360, colorScheme: 'dark' }, byKeyboard],
  ['without JavaScript, on a telephone', { width: 360, javaScript: false }, byMouse],
];
