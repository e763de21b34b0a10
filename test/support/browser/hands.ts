import type { Locator, Page } from 'playwright-core';
import { expectAccessible } from './accessible.ts';
import { Keyboard } from './keyboard.ts';
import type { Look } from './visit.ts';

/** A way to operate a page. */
export interface Hands {
  /** Activates a link or a button. */
  press(target: Locator): Promise<void>;
  /** Replaces the text of a field. */
  fill(field: Locator, text: string): Promise<void>;
  tick(box: Locator): Promise<void>;
  untick(box: Locator): Promise<void>;
  /** Selects a radio button. */
  select(radio: Locator): Promise<void>;
  /** Chooses an option of a list by its label. */
  choose(list: Locator, option: string): Promise<void>;
  /** Follows a skip link, if this way of using the page needs it. */
  skip(link: Locator): Promise<void>;
  /** Checks the page as it is now, including its accessibility. */
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
      // Tab leads to the checked radio button; the arrow keys move to the others.
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

/** Ways of using a page. Every task must be possible in each of them. */
export const WAYS: readonly [words: string, look: Look, handsOn: (page: Page) => Hands][] = [
  ['by the mouse, accessible at each step', {}, byMouse],
  ['on a telephone, in the dark, by the keyboard alone', { width: 360, colorScheme: 'dark' }, byKeyboard],
  ['without JavaScript', { javaScript: false }, withoutScripts],
];
