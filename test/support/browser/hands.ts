import type { Locator, Page } from 'playwright-core';
import { expectAccessible } from './accessible.ts';
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
  /** Takes the tick away. */
  untick(box: Locator): Promise<void>;
  /** Chooses one of several buttons, of which another one is chosen. */
  select(radio: Locator): Promise<void>;
  /** Chooses from a list by what it shows. */
  choose(list: Locator, option: string): Promise<void>;
  /** Takes a way past many stops, where it is needed. */
  skip(link: Locator): Promise<void>;
  /** Looks at the page as it is now: with eyes that see little, too. */
  look(): Promise<void>;
}

function byMouse(page: Page): Hands {
  return {
    press: (target) => target.click(),
    fill: (field, text) => field.fill(text),
    tick: (box) => box.check(),
    untick: (box) => box.uncheck(),
    select: (radio) => radio.check(),
    choose: async (list, label) => void (await list.selectOption({ label })),
    skip: async () => {},
    look: () => expectAccessible(page),
  };
}

function byKeyboard(page: Page): Hands {
  const keyboard = new Keyboard(page);
  const press = async (target: Locator) => {
    await keyboard.tabTo(target);
    await keyboard.press('Enter');
  };
  const toggle = async (box: Locator) => {
    await keyboard.tabTo(box);
    await keyboard.press('Space');
  };
  return {
    press,
    skip: press,
    look: async () => {},
    fill: async (field, text) => {
      await keyboard.tabTo(field);
      await keyboard.press('Control+A');
      await keyboard.press('Delete');
      await keyboard.type(text);
    },
    tick: toggle,
    untick: toggle,
    select: async (radio) => {
      // Tab leads to the one that is chosen, arrows from there to the others.
      await keyboard.tabTo(page.locator(`input[name="${await radio.getAttribute('name')}"]:checked`));
      while (!(await radio.isChecked())) await keyboard.press('ArrowRight');
    },
    choose: async (list, option) => {
      await keyboard.tabTo(list);
      await keyboard.type(option);
    },
  };
}

const withoutScripts = (page: Page): Hands => ({ ...byMouse(page), look: async () => {} });

/** The ways in which pages are used, each in words: whatever can be done must be possible in all of them. */
export const WAYS: readonly [words: string, look: Look, handsOn: (page: Page) => Hands][] = [
  ['by the mouse, accessible at each step', {}, byMouse],
  ['on a telephone, in the dark, by the keyboard alone', { width: 360, colorScheme: 'dark' }, byKeyboard],
  ['without JavaScript', { javaScript: false }, withoutScripts],
];
