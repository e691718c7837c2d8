// Bit-1 selector: finds, one after the other, the bits that are set in a run of bits of the weight buffer. For an exponent it
// looks from the highest bit down; for buckets it gives whole weights that are not zero; for steady powers every bit.
//
// It reads a word of the buffer, keeps the bits that are still to come, and takes two clocks from one bit to the next, two more
// for a word: less than a multiplication, so that finding costs no time.
//
// Source: PH-EPU 2023, Fig. 15.4.4 (bit-1 selector, shared by both modes).
module ph_selector (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         start_i,    // begin with another run
  input  logic [16:0]  first_i,    // its lowest bit's place in the buffer
  input  logic [12:0]  count_i,    // its bits, at least one; these and the following inputs stay
  input  logic         down_i,     // from the highest bit to the lowest
  input  logic         every_i,    // all bits, set or not
  input  logic         whole_i,    // a weight, not a bit, at a time
  input  logic [1:0]   width_i,    // weights of 2, 4, 8 bits
  output logic         read_o,     // of the weight buffer, which answers a clock later
  output logic [8:0]   address_o,
  input  logic [255:0] word_i,
  output logic         valid_o,    // there is a bit (a weight)
  output logic [11:0]  position_o, // where it is, counted from the first
  output logic         set_o,
  output logic [7:0]   weight_o,   // the weight that it belongs to, with its sign; for whole weights
  input  logic         take_i,     // on to the next
  output logic         end_o       // there is no more
);
  typedef enum logic [2:0] {END, FETCH, WORD, FIND, FOUND} state_e;
  state_e state_q;
  logic [8:0] address_q;
  logic [255:0] word_q; // the bits still to come; the highest in bit 0 if they come first
  logic [7:0] index_q;  // of the bit found, or of the next to look at

  logic [16:0] final_bit;
  logic [8:0] low_word, high_word;
  assign final_bit = first_i + 17'(count_i) - 1'b1;
  assign low_word  = first_i[16:8];
  assign high_word = final_bit[16:8];

  // The run's first and last bits in this word, in the order in which they come.
  logic last_word;
  logic [7:0] from, to;
  always_comb begin
    if (down_i) begin
      last_word = address_q == low_word;
      from      = (address_q == high_word) ? ~final_bit[7:0] : 8'd0;
      to        = last_word ? ~first_i[7:0] : 8'd255;
    end else begin
      last_word = address_q == high_word;
      from      = (address_q == low_word) ? first_i[7:0] : 8'd0;
      to        = last_word ? final_bit[7:0] : 8'd255;
    end
  end

  // The word as it comes, without what is not in the run.
  logic [255:0] ordered;
  always_comb begin
    ordered = '0;
    if (state_q == WORD) begin
      ordered = word_i;
      if (down_i) for (int unsigned i = 0; i < 256; i++) ordered[i] = word_i[255-i];
      ordered = (ordered >> from << from) & ('1 >> ~to);
    end
  end

  // The lowest bit set: in groups of 16.
  logic some;
  logic [7:0] lowest, found;
  always_comb begin
    some   = 1'b0;
    lowest = '0;
    if (state_q == FIND) begin
      for (int i = 15; i >= 0; i--) begin
        if (word_q[16*i+:16] != '0) begin
          some        = 1'b1;
          lowest[7:4] = 4'(i);
        end
      end
      for (int i = 15; i >= 0; i--) if (word_q[{lowest[7:4], 4'(i)}]) lowest[3:0] = 4'(i);
    end
  end
  assign found = every_i ? index_q : lowest;

  // The weight around a bit.
  logic [2:0] offset;
  logic [7:0] around, weight;
  always_comb begin
    around = '0;
    offset = '0;
    weight = '0;
    if (state_q == FIND && whole_i) begin
      around = word_q[{found[7:3], 3'd0}+:8];
      unique case (width_i)
        2'd0: begin
          offset = {found[2:1], 1'b0};
          weight = 8'(signed'(around[offset+:2]));
        end
        2'd1: begin
          offset = {found[2], 2'd0};
          weight = 8'(signed'(around[offset+:4]));
        end
        default: weight = around;
      endcase
    end
  end

  assign read_o    = state_q == FETCH;
  assign address_o = address_q;
  assign valid_o   = state_q == FOUND;
  assign end_o     = state_q == END;

  // How many bits are done with what was found.
  logic [7:0] done;
  always_comb begin
    done = index_q;
    if (whole_i) begin
      unique case (width_i)
        2'd0: done[0] = 1'b1;
        2'd1: done[1:0] = '1;
        default: done[2:0] = '1;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      WORD: begin
        word_q  <= ordered;
        index_q <= from;
      end
      FIND: begin
        index_q    <= found;
        position_o <= 12'({address_q, found ^ {8{down_i}}} - first_i);
        set_o      <= word_q[found];
        weight_o   <= weight;
      end
      FOUND: if (take_i) begin
        if (every_i) index_q <= index_q + 1'b1;
        else if (!whole_i) word_q[index_q] <= 1'b0;
        else begin
          for (int unsigned i = 0; i < 8; i++) begin
            if ({index_q[7:3], 3'(i)} >= index_q && {index_q[7:3], 3'(i)} <= done) word_q[{index_q[7:3], 3'(i)}] <= 1'b0;
          end
        end
      end
      default: ;
    endcase
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q   <= END;
      address_q <= '0;
    end else if (start_i) begin
      state_q   <= FETCH;
      address_q <= down_i ? high_word : low_word;
    end else begin
      unique case (state_q)
        FETCH: state_q <= WORD;
        WORD:  state_q <= FIND;
        FIND: begin
          if (every_i || some) state_q <= FOUND;
          else if (last_word) state_q <= END;
          else begin
            state_q   <= FETCH;
            address_q <= down_i ? address_q - 1'b1 : address_q + 1'b1;
          end
        end
        FOUND: if (take_i) begin
          if (!every_i || index_q != to) state_q <= FIND;
          else if (last_word) state_q <= END;
          else begin
            state_q   <= FETCH;
            address_q <= down_i ? address_q - 1'b1 : address_q + 1'b1;
          end
        end
        default: ;
      endcase
    end
  end
endmodule
