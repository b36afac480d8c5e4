// SPDX-License-Identifier: Apache-2.0
package pyflamert;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import com.sun.jna.Structure;
import com.sun.jna.Structure.FieldOrder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The declarations of include/pyflame_rt that the package uses, with the names that fields have there. Tables only grow
 * at their end, so a prefix of each is enough. LayoutTest holds every field against the header.
 */
final class Abi {
    /** Every library of major version 2 has what 2.0 has. */
    static final int VERSION = 2 << 16;
    static final int OPTIONS_SESSION = 3;
    static final int MEMORY_COPY = 1;

    /** A struct of C, or the first slots of a table: where each field lies, and how large it is. */
    static final class Layout {
        record Place(int offset, int size) {}

        final String name;
        final boolean whole;
        final Map<String, Place> fields = new LinkedHashMap<>();
        private int end;

        private Layout(String name, boolean whole) {
            this.name = name;
            this.whole = whole;
        }

        /** The fields as "name:size" in C's order; each is aligned for its size, or for 8 bytes if it is larger. */
        static Layout struct(String name, String fields) {
            Layout layout = new Layout(name, true);
            for (String field : fields.split(" ")) {
                String[] parts = field.split(":");
                layout.add(parts[0], Integer.parseInt(parts[1]));
            }
            return layout;
        }

        /** The slots in C's order, behind the head of a table. */
        static Layout table(String name, String slots) {
            Layout layout = new Layout(name, false);
            layout.add("struct_size", 4);
            layout.add("abi", 4);
            for (String slot : slots.split(" ")) {
                layout.add(slot, 8);
            }
            return layout;
        }

        private void add(String field, int size) {
            int alignment = Math.min(size, 8);
            int offset = (end + alignment - 1) / alignment * alignment;
            fields.put(field, new Place(offset, size));
            end = offset + size;
        }

        int size() {
            return (end + 7) / 8 * 8;
        }

        int at(String field) {
            return fields.get(field).offset();
        }
    }

    static final Layout ABI_INFO = Layout.struct("pfrt_abi_info", "struct_size:4 abi:4 version:16 message:16");
    static final Layout VALUE_INFO = Layout.struct("pfrt_value_info",
            "struct_size:4 kind:4 dtype:4 rank:4 name:16 dims:8 dim_names:8 key_dtype:4 has_initializer:4");
    static final Layout SESSION_DESC = Layout.struct("pfrt_session_desc",
            "struct_size:4 reserved:4 model:8 options:8 extra_outputs:8 extra_output_count:8 samples:8 sample_count:8 "
                    + "sample_source:8 log:8 log_user:8 log_release:8");
    static final Layout TENSOR = Layout.struct("pfrt_tensor",
            "struct_size:4 dtype:4 rank:4 memory:4 data:8 offset:8 bytes:8 dims:8 strides:8 quantization:8 extension:8 "
                    + "device:4 reserved:4");
    static final Layout IO = Layout.struct("pfrt_io", "struct_size:4 reserved:4 flags:8 tensor:80 value:8");
    static final Layout RUN_DESC = Layout.struct("pfrt_run_desc",
            "struct_size:4 log_level:4 cancel:8 timeout_ms:8 num_threads:8 priority:8 memory_limit:8 tag:16 flags:8 state:8 "
                    + "observe:8 observe_user:8");

    static final Layout API = Layout.table("pfrt_api", "status options env value graph model session");
    static final Layout STATUS = Layout.table("pfrt_status_api", "code message child_count child release");
    static final Layout OPTIONS = Layout.table("pfrt_options_api",
            "create retain release set_bool set_int set_float set_string set_strings set_text");
    static final Layout ENV = Layout.table("pfrt_env_api", "create");
    static final Layout VALUE = Layout.table("pfrt_value_api",
            "retain release kind create_tensor wrap_tensor tensor set_string count element create_sequence create_optional "
                    + "create_map map_parts create_sparse sparse_parts dtype create_on copy wrap_unaligned create_strings "
                    + "strings");
    static final Layout MODEL = Layout.table("pfrt_model_api", "load_file load_memory from_graph retain release");
    static final Layout SESSION = Layout.table("pfrt_session_api",
            "create retain release input_count input_at output_count output_at input_index output_index run run_named");

    static final List<Layout> ALL = List.of(ABI_INFO, VALUE_INFO, SESSION_DESC, TENSOR, IO, RUN_DESC, API, STATUS, OPTIONS,
            ENV, VALUE, MODEL, SESSION);

    /** A pfrt_string that is passed by its value, which JNA does for structures alone. */
    @FieldOrder({"data", "size"})
    public static class Text extends Structure {
        /** UTF-8, not terminated. */
        public Pointer data;
        /** In bytes. */
        public long size;

        /** The form that arguments and results have. */
        public static final class ByValue extends Text implements Structure.ByValue {}

        static ByValue of(String words) {
            byte[] bytes = words.getBytes(StandardCharsets.UTF_8);
            ByValue text = new ByValue();
            text.data = new Memory(bytes.length + 1L);
            text.data.write(0, bytes, 0, bytes.length);
            text.size = bytes.length;
            return text;
        }

        String words() {
            return Abi.words(data, size);
        }
    }

    /** The pfrt_string that lies at an offset. */
    static String words(Pointer pointer, int offset) {
        return words(pointer.getPointer(offset), pointer.getLong(offset + 8));
    }

    private static String words(Pointer data, long size) {
        return size == 0 ? "" : new String(data.getByteArray(0, (int) size), StandardCharsets.UTF_8);
    }

    private Abi() {}
}
